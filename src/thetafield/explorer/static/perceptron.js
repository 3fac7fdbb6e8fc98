// Linear layers with ReLU between them, on one vector, in double precision.

export function linear({ weight, bias }, x) {
  const [outputs, inputs] = weight.shape;
  const w = weight.data;
  const y = new Float64Array(outputs);
  for (let o = 0, at = 0; o < outputs; o++) {
    let sum = bias === null ? 0 : bias.data[o];
    for (let i = 0; i < inputs; i++) sum += w[at++] * x[i];
    y[o] = sum;
  }
  return y;
}

export function relu(x) {
  for (let i = 0; i < x.length; i++) if (x[i] < 0) x[i] = 0;
  return x;
}

export function perceptron({ layers, relu_last }, x) {
  for (let k = 0; k < layers.length; k++) {
    x = linear(layers[k], x);
    if (k < layers.length - 1 || relu_last) relu(x);
  }
  return x;
}
