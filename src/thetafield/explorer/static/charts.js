// Which training domains answer for a descriptor, and with what share.

import { wound } from "thetafield/winding.js";

const TINY = 1.1754943508222875e-38;

// The `count` nearest rows of `anchors` {data, shape: [N, d]}, nearest first; of equally near ones the first.
export function nearest(point, anchors, count) {
  const [number, width] = anchors.shape;
  const found = [];
  for (let i = 0; i < number; i++) {
    let sum = 0;
    for (let k = 0; k < width; k++) {
      const gap = point[k] - anchors.data[i * width + k];
      sum += gap * gap;
    }
    if (found.length === count && !(sum < found[count - 1].distance)) continue;
    let at = found.length;
    while (at > 0 && sum < found[at - 1].distance) at--;
    found.splice(at, 0, { index: i, distance: sum });
    if (found.length > count) found.pop();
  }
  for (const one of found) one.distance = Math.sqrt(one.distance);
  return found;
}

export function makeCharts(part) {
  const { anchors, seen, weights } = part;
  const place = (z) => (weights === null ? z : wound(seen, z).map((s, k) => s * weights.data[k]));
  const rules = {
    nearest: (z) => nearest(place(z), anchors, 1).map((one) => ({ ...one, share: 1 })),
    partition: (z) => partition(nearest(place(z), anchors, part.count + 1), part.bandwidth),
    inverse: (z) => inverse(nearest(place(z), anchors, part.count), part.power),
  };
  return {
    shares: rules[part.rule],
    nearest: (z, count) => nearest(place(z), anchors, count),
    spacing: part.spacing,
  };
}

// The last anchor sets the radius at which shares vanish, so that nothing jumps.
function partition(found, bandwidth) {
  const radius = Math.max(found[found.length - 1].distance, TINY);
  const used = found.slice(0, -1);
  const weights = used.map(({ distance }) => {
    const share = Math.min(distance / radius, 1) ** 2;
    return (1 - share) ** 2 * (bandwidth === null ? 1 : Math.exp(-share / bandwidth ** 2)) + TINY;
  });
  return shared(used, weights);
}

function inverse(found, power) {
  const closest = found[0].distance;
  return shared(found, found.map(({ distance }) => ((closest + TINY) / (distance + TINY)) ** power));
}

function shared(found, weights) {
  const total = weights.reduce((a, b) => a + b, 0);
  return found.map((one, k) => ({ ...one, share: weights[k] / total }));
}
