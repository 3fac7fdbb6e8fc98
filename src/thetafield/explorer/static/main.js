// Puts the page together: reads the field, makes the views, and draws a frame for every change.

import { makeAnswer } from "thetafield/answer.js";
import { makeBoundary } from "thetafield/boundary.js";
import { readColours } from "thetafield/colours.js";
import { makeCurves, tellingColumns } from "thetafield/curves.js";
import { makeDescriptors } from "thetafield/descriptors.js";
import { byId, element, percent, short } from "thetafield/dom.js";
import { makeManifold } from "thetafield/manifold.js";
import { makeModel, softmax } from "thetafield/model.js";
import { makePlane } from "thetafield/plane.js";
import { makeRow } from "thetafield/row.js";
import { makePoints, makeTiles } from "thetafield/samples.js";
import { makeState } from "thetafield/state.js";
import { makeTheme } from "thetafield/theme.js";
import { readDescription } from "thetafield/weights.js";
import { makeWho } from "thetafield/who.js";

const NEAREST = 6;
const KEPT = 500; // frames whose times are remembered

const description = await readDescription(JSON.parse(byId("description").textContent), byId("weights").textContent).catch((error) => {
  byId("lede").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
});
const model = makeModel(description);
const { data, shape } = description.trust.anchors;
const anchors = Array.from({ length: shape[0] }, (_, i) => model.raw(data.subarray(i * shape[1], (i + 1) * shape[1])));
const middle = description.low.map((low, k) => (low + description.high[k]) / 2);
// The two descriptors that drive the shift most are the first axes.
const weight = (k) => description.relevance[description.descriptors[k]]?.[0] ?? 0;
const heaviest = description.descriptors.map((_, k) => k).sort((a, b) => weight(b) - weight(a)).slice(0, 2).sort((a, b) => a - b);
const state = makeState({
  z: middle,
  x: heaviest[0] ?? 0,
  y: heaviest[1] ?? 0,
  row: Float64Array.from(description.inputs?.start ?? []),
});

const views = [];
const frames = [];
let colours = readColours();
build();
state.listen((now, fine) => {
  const started = performance.now();
  const theta = model.theta(now.z), nearest = model.nearest(now.z, Math.min(NEAREST, anchors.length));
  let kept = null;
  const seen = {
    ...now,
    theta,
    nearest,
    nearestTheta: () => (kept ??= anchors.length ? model.theta(anchors[nearest[0].index]) : theta),
    charts: model.charts === null ? [] : model.charts(now.z),
    alpha: model.alpha === null ? null : model.alpha(now.z),
    trust: model.trust(now.z),
    colours,
  };
  for (const view of views) view.draw(seen, fine);
  if (frames.length === KEPT) frames.shift();
  frames.push({ ms: performance.now() - started, fine });
  if (fine) announce(seen);
});

makeTheme(byId("theme"), () => {
  colours = readColours();
  state.set({});
});
new ResizeObserver(() => state.set({})).observe(document.querySelector("main"));

function build() {
  const { dataset, title, descriptors, inputs, forest } = description;
  byId("title").textContent = dataset === null ? `${title}: ${forest === null ? "a parameter field" : "a saved model"}` : `${title} on ${dataset}`;
  document.title = `${byId("title").textContent} · thetafield`;
  const same = description.field !== null && description.field.kind === "constant";
  byId("lede").textContent = !descriptors.length ? "This model was fitted without descriptors: it is the same everywhere."
    : same ? "Every descriptor is a domain, seen or unseen. This model does not read z: it answers alike everywhere, and only its trust changes."
    : "Every descriptor is a domain, seen or unseen. Drag z: the model for it is computed here, in your browser.";
  if (descriptors.length) views.push(makePlane(description, model, state, anchors), makeDescriptors(description, model, state));
  else for (const id of ["plane-card", "controls-card"]) byId(id).hidden = true;

  const add = (id, view) => {
    if (view.node) byId(id).append(view.node);
    views.push(view);
  };
  if (inputs !== null) {
    const plane = inputs.names.length === 2, split = element("div", { class: "split" });
    byId("answer").append(split);
    const shown = plane ? null : tellingColumns(description, model, model.theta(middle), 4);
    const main = plane ? makeBoundary(description, model, state, makePoints(description)) : makeCurves(description, model, shown);
    const answer = makeAnswer(description, model), row = makeRow(description, state, shown);
    split.append(main.node, element("div", {}, answer.node, row.node));
    byId("answer-tools").append(...(main.tools ?? []));
    views.push(main, answer, row);
  } else add("answer", makeTiles(description, model) ?? unseen());
  if (forest === null) add("surface", makeManifold(description, model, state));
  else byId("surface-card").hidden = true;
  if (descriptors.length) add("charts", makeWho(description, model, state, anchors));
  else byId("charts-card").hidden = true;
  byId("footer").append(...footnotes().map((text) => element("p", {}, text)));
}

function unseen() {
  const size = description.input_shape.join(" × ");
  const text = `Inputs are images or series (${size}), which the saved model does not hold: the page shows ${description.forest === null ? "θ(z)" : "trust"} alone. ` +
    "Export it with --samples N from the folder of the trial to see what the model at z says of samples.";
  return { node: element("p", { class: "note" }, text), draw() {} };
}

function footnotes() {
  const { field, forest, version, method } = description, notes = [...description.notes];
  const end = "This page asks for nothing from the network.";
  if (forest !== null) {
    const read = forest.read_descriptor ? "they read inputs and z together" : "these read inputs alone, so that only trust changes with z";
    notes.unshift(`Trees have no parameters θ(z): ${read}. They are walked through here, and answers equal Python's to 1e-4.`);
    return [...notes, `thetafield ${version}, method ${method}, ${forest.roots.data.length.toLocaleString("en")} trees. ${end}`];
  }
  if (field.kind === "grid")
    notes.unshift(`θ(z) is interpolated on a grid of ${field.points} points along each descriptor; at random descriptors it misses θ by ` +
      `${short(100 * field.error.median, 2)} % of its deviation from the mean (median; ${short(100 * field.error.high, 2)} % at the 95th percentile).`);
  else notes.unshift("θ(z) is computed exactly from the field's own weights, in double precision; answers equal Python's to 1e-4.");
  return [...notes, `thetafield ${version}, method ${method}, D = ${field.theta_dim.toLocaleString("en")} parameters. ${end}`];
}

function announce(now) {
  const place = description.descriptors.map((name, k) => `${name} ${short(now.z[k], 3)}`).join(", ");
  byId("live").textContent = `${place}; trust ${percent(now.trust)}`;
}

// For other programs, and for the tests: the numbers behind the pictures.
window.thetafield = {
  at: (z) => (description.forest === null ? Array.from(model.theta(z)) : []),
  predict: (x, z) => Array.from(model.predict(model.theta(z), Float64Array.from(x), 1)),
  probabilities: (x, z) => Array.from(softmax(model.predict(model.theta(z), Float64Array.from(x), 1), model.outputs, 1)),
  answer: (sample, z) => {
    const features = description.samples.features, width = features.shape[1];
    return Array.from(model.answers(model.theta(z), Float64Array.from(features.data.subarray(sample * width, (sample + 1) * width)), 1));
  },
  trust: (z) => model.trust(z),
  charts: (z) => (model.charts === null ? [] : model.charts(z)),
  state: () => ({ ...state.get(), z: [...state.get().z], row: Array.from(state.get().row) }),
  move: (z) => state.set({ z: [...z] }),
  frames,
};
