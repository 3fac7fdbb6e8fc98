// The page's colours for canvases, which cannot read style sheets, and the mixing of them.

// Okabe and Ito's, which every kind of colour vision keeps apart.
export const CLASSES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7f00", "#777f8c"];
const CLASSES_IN_DARK = ["#4aa8e0", "#f08a3c", "#35c79b", "#e39cc6", "#f0b429", "#8fd0f5", "#cfc34a", "#a3abba"];
const SCALE = ["#d3eadf", "#84cbbf", "#3a9fb5", "#24618e", "#1d2f5c"];
const SCALE_IN_DARK = ["#20304f", "#2a6a94", "#3fa6b8", "#8fd3bf", "#e6f5dc"];

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const named = ["paper", "card", "ink", "soft", "line", "accent", "well", "trust"];
  const colours = Object.fromEntries(named.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const dark = style.colorScheme.includes("dark") && !style.colorScheme.includes("light");
  const scale = (dark ? SCALE_IN_DARK : SCALE).map(parse);
  return { ...colours, dark, classes: dark ? CLASSES_IN_DARK : CLASSES, scale: (share) => along(scale, share) };
}

export function parse(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

export const mix = (a, b, share) => a.map((value, k) => value + (b[k] - value) * share);
export const css = (rgb, alpha = 1) => `rgb(${rgb.map(Math.round).join(" ")} / ${alpha})`;

function along(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const from = Math.min(Math.floor(place), stops.length - 2);
  return mix(stops[from], stops[from + 1], place - from);
}
