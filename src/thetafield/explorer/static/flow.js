// A latent that flows along time by de/dt = k(e): by one exponential where k is linear, by Runge-Kutta where it is not.

import { expmAction, normBound } from "thetafield/expm.js";
import { perceptron } from "thetafield/perceptron.js";

const MOST_STEPS = 10000;

export function makeFlow({ matrix, net, step }) {
  if (matrix !== null) {
    const bound = normBound(matrix.data, matrix.shape[0]);
    return (latent, time) => expmAction(matrix.data, bound, time, latent);
  }
  const moved = (value, slope, by) => Float64Array.from(value, (v, k) => v + by * slope[k]);
  return (latent, time) => {
    const count = Math.max(1, Math.ceil(Math.abs(time) / step - 1e-6)), by = time / count;
    if (!(count <= MOST_STEPS)) return new Float64Array(latent.length).fill(NaN);
    let value = latent;
    for (let k = 0; k < count; k++) {
      const first = perceptron(net, value);
      const second = perceptron(net, moved(value, first, by / 2));
      const third = perceptron(net, moved(value, second, by / 2));
      const fourth = perceptron(net, moved(value, third, by));
      value = Float64Array.from(value, (v, i) => v + (by / 6) * (first[i] + 2 * second[i] + 2 * third[i] + fourth[i]));
    }
    return value;
  };
}
