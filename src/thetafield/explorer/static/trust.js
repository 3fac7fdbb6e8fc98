// Trust in [0, 1]: 1 where the model does as well as on training domains, 0 where it is no better than a guess.

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
    const kept = (naive - Math.exp(log)) / Math.max(naive - attained, 1e-9);
    return Math.min(Math.max(kept, 0), 1) * fading(z, FADE * reach);
  };
}

// The logarithm of how hard a place is, whatever the signs.
function hardness(terrain, z) {
  if (terrain === null) return 0;
  const { low, high, centre, spread, slopes, bends } = terrain;
  let log = 0;
  for (let c = 0; c < z.length; c++) {
    const unit = (Math.min(Math.max(z[c], low[c]), high[c]) - centre[c]) / spread[c];
    log += slopes[c] * unit + bends[c] * (unit * unit - 1);
  }
  return log;
}
