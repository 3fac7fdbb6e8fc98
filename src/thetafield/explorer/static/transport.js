// T(e, z_source, z_target): the latent of a training domain carried to a descriptor.

import { expmAction, normBound } from "thetafield/expm.js";
import { linear, perceptron } from "thetafield/perceptron.js";
import { wound } from "thetafield/winding.js";

const KEPT = 2 ** 23; // numbers of generators that are remembered

export function makeTransport(part, anchors, latents) {
  const width = anchors.shape[1], m = latents.shape[1];
  const seen = (z) => wound(part.seen, z);
  const gateOf = (source) => {
    if (part.gate === null) return null;
    return perceptron(part.gate.linear, source).map((s, k) => part.gate.weight.data[k] / (1 + Math.exp(-s)));
  };
  const row = (table, i, columns) => table.data.subarray(i * columns, (i + 1) * columns);
  // What depends on the source alone is worked out once for each training domain.
  const prepare = (index) => {
    const plain = seen(row(anchors, index, width));
    const gate = gateOf(plain);
    const source = gate === null ? plain : Float64Array.from(plain, (s, k) => s * gate[k]);
    const known = { gate, source, latent: Float64Array.from(row(latents, index, m)) };
    return part.kind === "lie" ? { ...known, ...generators(part, source, index) } : known;
  };
  const memory = new Map();
  const most = part.kind === "lie" ? Math.max(8, Math.floor(KEPT / (part.shape[0] * m * m))) : 4096;
  const prepared = (index) => {
    if (!memory.has(index)) {
      if (memory.size >= most) memory.delete(memory.keys().next().value);
      memory.set(index, prepare(index));
    }
    return memory.get(index);
  };
  const carry = { lie, plain, linear: withoutLie }[part.kind];
  return (index, z) => {
    const start = prepared(index);
    const end = seen(z);
    const target = start.gate === null ? end : Float64Array.from(end, (s, k) => s * start.gate[k]);
    return carry(part, start, target);
  };
}

// Those of every anchor, or one set for all, come with the page where they take less than the network that emits them.
function generators(part, source, index) {
  const [count, m] = part.shape, size = count * m * m;
  const start = part.net === null && part.matrices.shape[0] > 1 ? index * size : 0;
  const all = part.net === null ? Float64Array.from(part.matrices.data.subarray(start, start + size)) : perceptron(part.net, source);
  const matrices = Array.from({ length: count }, (_, k) => all.subarray(k * m * m, (k + 1) * m * m));
  return { matrices, bounds: matrices.map((matrix) => normBound(matrix, m)) };
}

const difference = (target, source) => Float64Array.from(target, (t, k) => t - source[k]);

function lie(part, start, target) {
  const delta = difference(target, start.source);
  const scalars = part.coefficients === null ? delta : perceptron(part.coefficients, delta);
  let latent = start.latent;
  for (let k = 0; k < start.matrices.length; k++)
    latent = expmAction(start.matrices[k], start.bounds[k], scalars[k], latent);
  return latent;
}

function plain(part, start, target) {
  return perceptron(part.net, Float64Array.from([...start.source, ...start.latent, ...target]));
}

function withoutLie(part, start, target) {
  const matrix = perceptron(part.net, difference(target, start.source));
  const m = start.latent.length;
  return linear({ weight: { data: matrix, shape: [m, m] }, bias: null }, start.latent);
}
