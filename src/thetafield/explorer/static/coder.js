// θ = f_d(e): from a latent back to parameters.

import { perceptron } from "thetafield/perceptron.js";

export function makeDecoder({ decoder, basis }) {
  return (latent) => {
    const found = perceptron(decoder, latent);
    return basis === null ? found : perceptron(basis, found);
  };
}
