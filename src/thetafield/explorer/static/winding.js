// Descriptors along the directions of a metric, of which one may go round.

import { linear } from "thetafield/perceptron.js";

export function wound(part, z) {
  if (part === null) return z;
  const frequencies = part.frequencies.data, phases = part.phases.data;
  return linear({ weight: part.directions, bias: null }, z).map((s, k) =>
    frequencies[k] > 0 ? Math.sin(frequencies[k] * s + phases[k]) / frequencies[k] : s);
}
