// Trust in [0, 1]: 1 where the model does as well as on training domains, 0 where it is no better than a guess.

import { nearest } from "thetafield/charts.js";

const FADE = 3; // reaches over which a calibrated trust fades

export function makeTrust({ anchors, reach, calibration }, field) {
  if (!anchors.shape[1]) return () => 1;
  const fading = (z, width) => Math.exp(-0.5 * (nearest(z, anchors, 1)[0].distance / width) ** 2);
  if (calibration === null) return (z) => fading(z, reach);
  if (field.trust) return field.trust;
  const { scales, weights, intercept, naive, attained } = calibration;
  return (z) => {
    let log = intercept;
    field.doubts(z).forEach((sign, k) => {
      if (weights[k] > 0) log += weights[k] * Math.log1p((Number.isNaN(sign) ? Infinity : sign) / scales[k]);
    });
    const kept = (naive - Math.exp(log)) / Math.max(naive - attained, 1e-9);
    return Math.min(Math.max(kept, 0), 1) * fading(z, FADE * reach);
  };
}
