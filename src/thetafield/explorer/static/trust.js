// Trust in [0, 1]: 1 where the model errs as little as on the easiest training domains, 0 where a guess does as well.

import { nearest } from "thetafield/charts.js";

const FADE = 3; // reaches over which a calibrated trust fades

export function makeTrust({ anchors, reach, calibration }, field) {
  if (!anchors.shape[1]) return () => 1;
  const fading = (z, width) => Math.exp(-0.5 * (nearest(z, anchors, 1)[0].distance / width) ** 2);
  if (calibration === null) return (z) => fading(z, reach);
  if (field.trust) return field.trust;
  const { scales, weights, intercept, terrain, naive, attained } = calibration;
  return (z) => {
    let log = intercept + hardness(terrain, z);
    field.doubts(z).forEach((sign, k) => {
      if (weights[k] > 0) log += weights[k] * Math.log1p((Number.isNaN(sign) ? Infinity : sign) / scales[k]);
    });
    const kept = (naive - Math.exp(log)) / Math.max(naive - attained, 1e-30);
    return Math.min(Math.max(kept, 0), 1) * fading(z, FADE * reach);
  };
}

// The logarithm of how hard a place is, whatever the signs: hills, or slopes and bends of each coordinate.
function hardness(terrain, z) {
  if (terrain === null) return 0;
  const { low, high, centre, spread, points, weights, width } = terrain;
  const unit = z.map((value, c) => (Math.min(Math.max(value, low[c]), high[c]) - centre[c]) / spread[c]);
  const [count, dimension] = points.shape;
  let log = 0;
  for (let i = 0; i < count; i++) {
    let kernel = 0;
    for (let c = 0; c < dimension; c++) {
      const u = unit[c], v = points.data[i * dimension + c];
      kernel += width === null ? u * v + (u * u - 1) * (v * v - 1) : ((u - v) / width) ** 2;
    }
    log += weights.data[i] * (width === null ? kernel : Math.exp(-0.5 * kernel));
  }
  return log;
}
