// Samples of the training domains: points that set the window, and images with what the model at z says of them.

import { element, percent, short } from "thetafield/dom.js";
import { softmax } from "thetafield/model.js";

export function makePoints({ samples }) {
  if (samples === null || samples.points === null || samples.points.shape[1] !== 2) return null;
  const groups = [];
  samples.domain.forEach((domain, k) => {
    const x = [samples.points.data[2 * k], samples.points.data[2 * k + 1]];
    (groups[domain] ??= []).push({ x, target: samples.target[k] });
  });
  const ends = groups.map((group) => [0, 1].map((k) => [Math.min(...group.map((p) => p.x[k])), Math.max(...group.map((p) => p.x[k]))]));
  return {
    of: (domain) => groups[domain] ?? [],
    centre: ends.map((pair) => pair.map(([low, high]) => (low + high) / 2)),
    reach: ends.map((pair) => pair.map(([low, high]) => Math.max((high - low) / 2, 1e-6))),
  };
}

export function makeTiles(description, model) {
  const { samples, classes } = description;
  if (samples === null || samples.images === null) return null;
  const [count, height, width, channels] = samples.images.shape;
  const features = Float64Array.from(samples.features.data);
  const tiles = Array.from({ length: count }, (_, k) => {
    const canvas = element("canvas", { width, height, role: "img", "aria-label": `Sample ${k + 1}` });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let p = 0; p < width * height; p++) {
      for (let c = 0; c < 3; c++) image.data[4 * p + c] = samples.images.data[(k * width * height + p) * channels + (channels === 3 ? c : 0)];
      image.data[4 * p + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    const caption = element("figcaption");
    return { caption, node: element("figure", { class: "tile" }, canvas, caption) };
  });
  const said = "What the model at this z says of samples of the training domains"
    + (classes === null ? "" : ": a green frame where that is their class, an orange one where it is not (point at a picture for its class).");
  if (classes !== null) tiles.forEach(({ node }, s) => { node.title = `class ${classes[samples.target[s]]}`; });
  return {
    node: element("div", {}, element("p", { class: "said" }, said),
      element("div", { class: "tiles" }, ...tiles.map((tile) => tile.node))),
    draw(now) {
      const answers = model.answers(now.theta, features, count), k = model.outputs;
      if (classes !== null) softmax(answers, k, count);
      tiles.forEach(({ caption, node }, s) => {
        if (classes === null) {
          caption.textContent = short(answers[s * k]);
          return;
        }
        let best = 0;
        for (let c = 1; c < k; c++) if (answers[s * k + c] > answers[s * k + best]) best = c;
        caption.replaceChildren(element("b", {}, classes[best]), ` ${percent(answers[s * k + best])}`);
        node.className = `tile ${best === samples.target[s] ? "right" : "wrong"}`;
      });
    },
  };
}
