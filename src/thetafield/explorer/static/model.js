// (x, z) ↦ answer for raw inputs and raw descriptors: the field and its head, or trees, and the scalings around them.

import { makeCharts, nearest } from "thetafield/charts.js";
import { makeField } from "thetafield/field.js";
import { makeForest } from "thetafield/forest.js";
import { makeHead } from "thetafield/head.js";
import { makeTrust } from "thetafield/trust.js";

export function makeModel(description) {
  const { low, high, classes, num_outputs: outputs } = description;
  const charts = description.charts === null ? null : makeCharts(description.charts);
  const forest = description.forest === null ? null : makeForest(description.forest);
  const field = forest === null ? makeField(description.field, charts) : { theta: (z) => z, doubts: () => [] };
  const trust = makeTrust(description.trust, field);
  const head = description.head === null ? forest : makeHead(description.head);
  const span = low.map((value, k) => (high[k] > value ? high[k] - value : 1));
  // In single precision, step by step, as in training: trees tell a number from the next one.
  const single = (value, shift, scale) => Math.fround(Math.fround(Math.fround(value) - shift) / scale);
  // What did not vary in training tells nothing, unless nothing did.
  const still = low.map((value, k) => high[k] <= value && high.some((end, j) => end > low[j]));
  const scaled = (z) => Float64Array.from(low, (value, k) => (still[k] ? 0 : single(z[k], value, Math.fround(span[k]))));
  const raw = (s) => low.map((value, k) => value + s[k] * span[k]);

  const standardised = (x) => {
    const affine = description.inputs_affine;
    if (affine === null) return Float64Array.from(x, Math.fround);
    const width = affine.shift.data.length;
    const result = new Float64Array(x.length);
    for (let i = 0; i < x.length; i++) result[i] = single(x[i], affine.shift.data[i % width], affine.scale.data[i % width]);
    return result;
  };
  // Answers for features of `count` samples: logits, or targets on their raw scale.
  const answers = (theta, features, count) => {
    const y = head(theta, features, count);
    const affine = description.outputs_affine;
    if (affine !== null)
      for (let i = 0; i < y.length; i++) y[i] = y[i] * affine.scale.data[i % outputs] + affine.shift.data[i % outputs];
    return y;
  };
  return {
    scaled,
    raw,
    span,
    outputs,
    classes,
    hasHead: head !== null,
    theta: (z) => field.theta(scaled(z)),
    trust: (z) => trust(scaled(z)),
    alpha: field.alpha ? (z) => field.alpha(scaled(z)) : null,
    charts: charts === null ? null : (z) => charts.shares(scaled(z)),
    nearest: (z, count) => nearest(scaled(z), description.trust.anchors, count),
    answers,
    predict: (theta, x, count) => answers(theta, standardised(x), count),
  };
}

// Logits of `count` samples as probabilities, in place.
export function softmax(logits, width, count) {
  for (let s = 0; s < count; s++) {
    let top = -Infinity, sum = 0;
    for (let k = 0; k < width; k++) top = Math.max(top, logits[s * width + k]);
    for (let k = 0; k < width; k++) sum += logits[s * width + k] = Math.exp(logits[s * width + k] - top);
    for (let k = 0; k < width; k++) logits[s * width + k] /= sum;
  }
  return logits;
}
