// θ(z) at scaled descriptors, for every kind of field, with the signs that it may be wrong.

import { makeDecoder } from "thetafield/coder.js";
import { makeFlow } from "thetafield/flow.js";
import { makeGrid } from "thetafield/grid.js";
import { perceptron } from "thetafield/perceptron.js";
import { makeTransport } from "thetafield/transport.js";

const SAYING = 8; // charts that are asked whether they agree
const NOTHING = 1e-6; // a share below which the base answers alone

const rowOf = ({ data, shape }, i) => Float64Array.from(data.subarray(i * shape[1], (i + 1) * shape[1]));
const centred = (z) => Float64Array.from(z, (value) => 2 * value - 1);

// How far each coordinate has come in each of its intervals: 0 before it, 1 past it; beyond all, by the whole range.
function piecewise(z, { data, shape }) {
  const count = shape[1] - 1;
  return Float64Array.from({ length: z.length * count }, (_, i) => {
    const k = Math.floor(i / count), j = i % count, at = k * shape[1] + j;
    const low = data[k * shape[1]], high = data[k * shape[1] + count];
    const way = Math.min(Math.max((z[k] - data[at]) / (data[at + 1] - data[at]), 0), 1);
    const before = j === 0 ? Math.max(low - z[k], 0) : 0, past = j === count - 1 ? Math.max(z[k] - high, 0) : 0;
    return way + (past - before) / (high - low);
  });
}

export function makeField(part, charts) {
  return { doubts: () => [], ...KINDS[part.kind](part, charts) };
}

const KINDS = {
  constant: ({ theta }) => ({ theta: () => Float64Array.from(theta.data) }),

  modulated: ({ theta, start, encoder, shift, mean, std, edges }) => ({
    theta: (z) => {
      const read = edges
        ? piecewise(z, edges)
        : Float64Array.from(z, (value, k) => (value - mean.data[k]) / std.data[k]);
      const moved = perceptron(shift, perceptron(encoder, read));
      const result = Float64Array.from(theta.data);
      for (let k = 0; k < moved.length; k++) result[start + k] += moved[k];
      return result;
    },
  }),

  film: ({ theta, encoder, modulation, layers }) => ({
    theta: (z) => {
      const both = perceptron(modulation, perceptron(encoder, centred(z)));
      const result = Float64Array.from(theta.data), count = both.length / 2;
      let unit = 0;
      for (const [from, to, first, last] of layers) {
        const columns = (to - from) / (last - first);
        for (let u = 0; u < last - first; u++, unit++) {
          for (let c = 0; c < columns; c++) result[from + u * columns + c] *= 1 + both[unit];
          result[first + u] = result[first + u] * (1 + both[unit]) + both[count + unit];
        }
      }
      return result;
    },
  }),

  hypernet: ({ theta, encoder, decoder }) => ({
    theta: (z) => perceptron(decoder, perceptron(encoder, centred(z))).map((value, k) => value + theta.data[k]),
  }),

  table: ({ theta }, charts) => ({ theta: (z) => mean(charts.shares(z), (one) => rowOf(theta, one.index)) }),
  interpolated: ({ theta }, charts) => ({ theta: (z) => mean(charts.shares(z), (one) => rowOf(theta, one.index)) }),

  sequence: ({ theta, times }) => ({
    theta: (z) => {
      let before = 0;
      while (before < times.data.length && times.data[before] < z[0]) before++;
      return rowOf(theta, before);
    },
  }),

  transported: (part, charts) => {
    const carry = makeTransport(part.transport, part.anchors, part.latents), decode = makeDecoder(part.coder);
    return {
      theta: (z) => decode(mean(charts.shares(z), (one) => carry(one.index, z))),
      doubts: (z) => {
        const near = charts.nearest(z, Math.min(SAYING, part.anchors.shape[0]));
        const said = near.map((one) => ({ share: 1 / near.length, latent: carry(one.index, z) }));
        const middle = mean(said, (one) => one.latent);
        const spread = said.reduce((sum, one) => sum + one.share * distance(one.latent, middle), 0);
        return [near[0].distance / charts.spacing, spread, part.lost.data[near[0].index]];
      },
    };
  },

  shrunk: (part, charts) => {
    const base = makeField(part.base, charts), moved = makeField(part.moved, charts), centre = part.centre.data;
    const alpha = (z) =>
      part.reach === null
        ? part.shrink
        : part.shrink * Math.exp(-0.5 * (charts.nearest(z, 1)[0].distance / part.reach) ** 2);
    return {
      alpha,
      theta: (z) => {
        const result = base.theta(z), share = alpha(z);
        if (part.shrink === 0 || share < NOTHING) return result;
        const added = moved.theta(z);
        for (let k = 0; k < result.length; k++) result[k] += share * (added[k] - centre[k]);
        return result;
      },
      doubts: (z) => {
        const share = alpha(z);
        return moved.doubts(z).map((sign, k) => (k === 0 ? sign : share < NOTHING ? 0 : share * sign));
      },
    };
  },

  flow: (part) => {
    const flow = makeFlow(part.flow), decode = makeDecoder(part.coder), times = part.times.data;
    return {
      theta: (z) => {
        let before = 0;
        while (before + 1 < times.length && times[before + 1] <= z[0]) before++;
        return decode(flow(rowOf(part.latents, before), (z[0] - times[before]) * Math.max(1, times.length - 1)));
      },
    };
  },

  grid: (part) => makeGrid(part),
};

function mean(shares, of) {
  if (shares.length === 1) return of(shares[0]);
  let sum = null;
  for (const one of shares) {
    const part = of(one);
    sum ??= new Float64Array(part.length);
    for (let k = 0; k < part.length; k++) sum[k] += one.share * part[k];
  }
  return sum;
}

function distance(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += (a[k] - b[k]) ** 2;
  return Math.sqrt(sum);
}
