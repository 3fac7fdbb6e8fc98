// Elements in one line each.

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// A name that may break after its underscores, dots and slashes, and only there.
export const breakable = (name) => String(name).split(/(?<=[_./])(?=.)/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));

export const byId = (id) => document.getElementById(id);

// A number in the fewest digits that tell neighbours apart.
export function short(value, digits = 4) {
  if (!Number.isFinite(value)) return "no number";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// A number of a control as its box holds it: what is nothing beside the control's range is zero.
export const boxed = (value, range) => (Math.abs(value) < 1e-6 * range ? 0 : Number(value.toPrecision(5)));

export const percent = (share) => `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)} %`;
