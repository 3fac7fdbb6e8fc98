// g(x; θ): a perceptron whose weights are a piece of θ, on many samples at once.

const BOUND = 3; // of features before the measurement lift

export function makeHead({ widths, lift }) {
  // One pair of buffers serves every call: a frame asks for thousands of samples.
  let spare = [new Float64Array(0), new Float64Array(0)];
  const widest = Math.max(...widths);
  return (theta, x, count) => {
    if (spare[0].length < widest * count) spare = [0, 1].map(() => new Float64Array(widest * count));
    let from = x, at = 0;
    for (let k = 0; k + 1 < widths.length; k++) {
      const last = k + 2 === widths.length;
      if (last && lift === "measurement") measure(from, widths[k], count);
      const to = last ? new Float64Array(widths[k + 1] * count) : spare[k % 2];
      at = layer(theta, at, widths[k], widths[k + 1], from, to, count, !last);
      from = to;
    }
    return from;
  };
}

// Two outputs of four samples at a time: what is read once serves several products. ReLU is applied on the way out.
function layer(theta, at, inputs, outputs, x, y, count, rectify) {
  const biases = at + inputs * outputs, floor = rectify ? 0 : -Infinity;
  const fours = count - (count % 4), pairs = outputs - (outputs % 2);
  for (let s = 0; s < fours; s += 4) {
    const a = s * inputs, b = a + inputs, c = b + inputs, d = c + inputs;
    for (let o = 0; o < pairs; o += 2) {
      const first = at + o * inputs, second = first + inputs;
      let p0 = theta[biases + o], p1 = p0, p2 = p0, p3 = p0;
      let q0 = theta[biases + o + 1], q1 = q0, q2 = q0, q3 = q0;
      for (let i = 0; i < inputs; i++) {
        const v = theta[first + i], w = theta[second + i];
        const x0 = x[a + i], x1 = x[b + i], x2 = x[c + i], x3 = x[d + i];
        p0 += v * x0; p1 += v * x1; p2 += v * x2; p3 += v * x3;
        q0 += w * x0; q1 += w * x1; q2 += w * x2; q3 += w * x3;
      }
      const to = s * outputs + o;
      y[to] = p0 < floor ? floor : p0;
      y[to + 1] = q0 < floor ? floor : q0;
      y[to + outputs] = p1 < floor ? floor : p1;
      y[to + outputs + 1] = q1 < floor ? floor : q1;
      y[to + 2 * outputs] = p2 < floor ? floor : p2;
      y[to + 2 * outputs + 1] = q2 < floor ? floor : q2;
      y[to + 3 * outputs] = p3 < floor ? floor : p3;
      y[to + 3 * outputs + 1] = q3 < floor ? floor : q3;
    }
  }
  // What is left over: the last output of an odd number, and the last samples.
  for (let s = 0; s < count; s++)
    for (let o = s < fours ? pairs : 0; o < outputs; o++) {
      let sum = theta[biases + o];
      for (let i = 0; i < inputs; i++) sum += theta[at + o * inputs + i] * x[s * inputs + i];
      y[s * outputs + o] = sum < floor ? floor : sum;
    }
  return biases + outputs;
}

// The Koopman measurement: slices squared, cubed, exponentiated, under cosine and sine, and left alone.
function measure(x, width, count) {
  const eighth = Math.floor(width / 8), quarter = Math.floor(width / 4);
  const ends = [eighth, 2 * eighth, 2 * eighth + quarter, 3 * eighth + quarter, 4 * eighth + quarter];
  for (let s = 0; s < count; s++)
    for (let k = 0; k < width; k++) {
      const v = BOUND * Math.tanh(x[s * width + k] / BOUND);
      x[s * width + k] =
        k < ends[0] ? v * v
        : k < ends[1] ? v ** 3
        : k < ends[2] ? Math.exp(v)
        : k < ends[3] ? Math.cos(v)
        : k < ends[4] ? Math.sin(v)
        : v;
    }
}
