// Inputs of two numbers: the model's answer at every point of the plane, with the boundary between two classes.

import { drawAxes, frame, paintCells, sharpen } from "thetafield/canvas.js";
import { css, mix, parse } from "thetafield/colours.js";
import { contour } from "thetafield/contour.js";
import { element } from "thetafield/dom.js";
import { makeLater } from "thetafield/later.js";
import { softmax } from "thetafield/model.js";

const COARSE = 64, FINE = 160;
const BLOCK = 1024; // points that are answered at once while the fine picture is made
const ALIKE = 4; // how many times as far one input may reach as the other
const NEAR = 4; // training domains whose samples set the window

export function makeBoundary(description, model, state, samples) {
  const canvas = element("canvas", { role: "img", "aria-label": "The model's answer at every input" });
  const later = makeLater();
  const legend = samples === null ? "Tints are the answers; click to choose an input." : "Tints are the answers of the model at z; points are samples of the nearest training domain. Click to choose an input.";
  const node = element("div", { class: "boundary" }, canvas, element("p", { class: "note" }, legend));
  const { low, high, names } = description.inputs;
  const whole = { centre: low.map((l, k) => (l + high[k]) / 2), reach: low.map((l, k) => (high[k] - l) / 2) };
  const two = description.classes !== null && model.outputs === 2;
  let at = null, zoom = 1, follows = samples !== null;

  const step = (factor, name, sign) =>
    element("button", { type: "button", "aria-label": name, onclick: () => { zoom *= factor; state.set({}); } }, sign);
  const tools = [step(1.25, "Show more of the plane", "−"), step(0.8, "Show less of the plane", "+")];
  if (samples !== null)
    tools.unshift(element("label", {}, element("input", {
      type: "checkbox", checked: true, onchange: (event) => { follows = event.target.checked; state.set({}); },
    }), "Zoom to the data"));
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pick(event); });
  canvas.addEventListener("pointermove", (event) => canvas.hasPointerCapture(event.pointerId) && pick(event));
  function pick(event) {
    const box = canvas.getBoundingClientRect();
    state.set({ row: Float64Array.of(at.dataX(event.clientX - box.left), at.dataY(event.clientY - box.top)) });
  }

  // The window that the nearest training domains would fill, between them by distance, so that it does not jump.
  function windowAt(z) {
    if (!follows) return whole;
    const near = model.nearest(z, NEAR), weights = near.map((one) => 1 / (one.distance + 1e-3) ** 2);
    const total = weights.reduce((a, b) => a + b, 0);
    const mean = (of) => near.reduce((sum, one, i) => sum + (weights[i] / total) * of(one.index), 0);
    const both = (of) => [0, 1].map((k) => mean((index) => of(index)[k]));
    return { centre: both((index) => samples.centre[index]), reach: both((index) => samples.reach[index].map((r) => 1.15 * r)) };
  }

  function points(size) {
    const x = new Float64Array(2 * size * size);
    for (let row = 0, p = 0; row < size; row++)
      for (let column = 0; column < size; column++) {
        x[p++] = between(at.rangeX, column / (size - 1));
        x[p++] = between(at.rangeY, row / (size - 1));
      }
    return x;
  }

  function paint(now, size, answers) {
    const { context } = sharpen(canvas);
    const card = parse(now.colours.card), count = size * size, k = model.outputs;
    const box = { ...at.box };
    if (description.classes === null) {
      let least = Infinity, most = -Infinity;
      for (let p = 0; p < count; p++) { least = Math.min(least, answers[p * k]); most = Math.max(most, answers[p * k]); }
      paintCells(context, box, size, size, (p) => now.colours.scale((answers[p * k] - least) / (most - least || 1)));
    } else {
      const gap = two ? Float64Array.from({ length: count }, (_, p) => answers[2 * p + 1] - answers[2 * p]) : null;
      const shares = softmax(answers, k, count), inks = Array.from({ length: k }, (_, c) => parse(now.colours.classes[c % 8]));
      paintCells(context, box, size, size, (p) => {
        let best = 0;
        for (let c = 1; c < k; c++) if (shares[p * k + c] > shares[p * k + best]) best = c;
        const sure = (shares[p * k + best] - 1 / k) / (1 - 1 / k);
        return Number.isFinite(sure) ? mix(card, inks[best], 0.08 + 0.34 * sure) : card;
      });
      if (two) {
        context.beginPath();
        const spot = (c, r) => [box.left + ((c + 0.5) / size) * box.width, box.top + box.height - ((r + 0.5) / size) * box.height];
        contour(gap, size, size, (c, r) => context.moveTo(...spot(c, r)), (c, r) => context.lineTo(...spot(c, r)));
        context.strokeStyle = now.colours.ink;
        context.lineWidth = 1.8;
        context.stroke();
      }
    }
    drawSamples(context, now);
    drawAxes(context, at, now.colours, { x: names[0], y: names[1] });
    const [x, y] = [at.x(now.row[0]), at.y(now.row[1])];
    context.strokeStyle = now.colours.ink;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 4 * dx, y + 4 * dy);
      context.lineTo(x + 10 * dx, y + 10 * dy);
    }
    context.stroke();
  }

  // Samples of the nearest training domain, in the colours of their classes.
  function drawSamples(context, now) {
    if (samples === null) return;
    const { left, top, width, height } = at.box;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.lineWidth = 0.8;
    context.strokeStyle = now.colours.card;
    for (const { x, target } of samples.of(now.nearest[0].index)) {
      context.fillStyle = description.classes === null ? css(parse(now.colours.ink), 0.6) : now.colours.classes[target % 8];
      context.beginPath();
      context.arc(at.x(x[0]), at.y(x[1]), 3.2, 0, 7);
      context.fill();
      context.stroke();
    }
    context.restore();
  }

  function* refine(now, theta) {
    const x = points(FINE), count = FINE * FINE, k = model.outputs, answers = new Float64Array(count * k);
    for (let p = 0; p < count; p += BLOCK) {
      const end = Math.min(p + BLOCK, count);
      answers.set(model.predict(theta, x.subarray(2 * p, 2 * end), end - p), p * k);
      yield;
    }
    paint(now, FINE, answers);
  }
  const nothing = (function* () {})();

  return {
    node,
    tools,
    draw(now, fine) {
      const { centre, reach } = windowAt(now.z);
      const width = canvas.clientWidth || 300, height = canvas.clientHeight || 240;
      const box = { left: 56, top: 6, width: width - 64, height: height - 46 };
      const [wide, tall] = sides(reach, box).map((side) => side * zoom);
      at = frame(box, [centre[0] - wide, centre[0] + wide], [centre[1] - tall, centre[1] + tall]);
      if (fine) return later(refine({ ...now }, now.theta));
      later(nothing);
      paint(now, COARSE, model.predict(now.theta, points(COARSE), COARSE * COARSE));
    },
  };
}

const between = ([low, high], share) => low + share * (high - low);

// Inputs of like size share one scale, so that shapes keep their proportions; others fill the box each by itself.
function sides([x, y], box) {
  if (Math.max(x / y, y / x) > ALIKE) return [x, y];
  const scale = Math.max(x / box.width, y / box.height);
  return [scale * box.width, scale * box.height];
}
