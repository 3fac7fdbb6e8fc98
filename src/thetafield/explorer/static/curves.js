// Response curves: how the answer changes with one column while the others stay, here and at the nearest domain.

import { drawAxes, frame, sharpen } from "thetafield/canvas.js";
import { css, parse } from "thetafield/colours.js";
import { element } from "thetafield/dom.js";
import { softmax } from "thetafield/model.js";

const POINTS = 65;
const MOST_LINES = 4;

export function makeCurves(description, model, shown) {
  const { names, low, high } = description.inputs;
  const node = element("div", { class: "curves" });
  const note = element("p", { class: "note" });
  const figures = new Map();
  // Of two classes the second says all; of more the first few are drawn.
  const lines = description.classes === null ? [0] : model.outputs === 2 ? [1] : Array.from({ length: Math.min(MOST_LINES, model.outputs) }, (_, c) => c);

  function figure(at) {
    if (!figures.has(at)) {
      const canvas = element("canvas", { role: "img", "aria-label": `Response to ${names[at]}` });
      figures.set(at, { canvas, node: element("figure", {}, canvas, element("figcaption", { title: names[at] }, names[at])) });
    }
    return figures.get(at);
  }

  function responses(theta, row, at) {
    const width = row.length, x = new Float64Array(POINTS * width);
    for (let p = 0; p < POINTS; p++) {
      x.set(row, p * width);
      x[p * width + at] = low[at] + (p / (POINTS - 1)) * (high[at] - low[at]);
    }
    const answers = model.predict(theta, x, POINTS);
    if (description.classes !== null) softmax(answers, model.outputs, POINTS);
    return answers;
  }

  return {
    node: element("div", {}, node, note),
    draw(now) {
      const chosen = [...shown].sort((a, b) => a - b);
      const current = chosen.map((at) => figure(at).node);
      if (current.length !== node.childElementCount || current.some((child, k) => node.children[k] !== child)) node.replaceChildren(...current);
      note.textContent = chosen.length
        ? `${subject(description, lines)} as one column changes and the others stay; the faint line is the model of the nearest training domain.`
        : "Tick a column to draw its curve.";
      const both = chosen.map((at) => [responses(now.theta, now.row, at), responses(now.nearestTheta(), now.row, at)]);
      const k = model.outputs;
      let range = [0, 1];
      if (description.classes === null) {
        const all = both.flat().flatMap((answers) => Array.from({ length: POINTS }, (_, p) => answers[p * k])).filter(Number.isFinite);
        range = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
        const pad = 0.06 * (range[1] - range[0]) || 1;
        range = [range[0] - pad, range[1] + pad];
      }
      chosen.forEach((at, which) => {
        const { context, width, height } = sharpen(figure(at).canvas);
        const view = frame({ left: 44, top: 6, width: width - 52, height: height - 26 }, [low[at], high[at]], range);
        const stroke = (answers, c, style, thick) => {
          context.beginPath();
          for (let p = 0; p < POINTS; p++) {
            const spot = [view.x(low[at] + (p / (POINTS - 1)) * (high[at] - low[at])), view.y(answers[p * k + c])];
            context[p ? "lineTo" : "moveTo"](...spot);
          }
          context.strokeStyle = style;
          context.lineWidth = thick;
          context.stroke();
        };
        drawAxes(context, view, now.colours, {}, 10.5);
        context.save();
        context.beginPath();
        context.rect(view.box.left, view.box.top, view.box.width, view.box.height);
        context.clip();
        for (const c of lines) {
          const ink = description.classes === null ? now.colours.accent : now.colours.classes[c % 8];
          stroke(both[which][1], c, css(parse(ink), 0.32), 1.5);
          stroke(both[which][0], c, ink, 2.2);
        }
        context.strokeStyle = css(parse(now.colours.ink), 0.45);
        context.setLineDash([3, 3]);
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(view.x(now.row[at]), view.box.top);
        context.lineTo(view.x(now.row[at]), view.box.top + view.box.height);
        context.stroke();
        context.restore();
      });
    },
  };
}

function subject(description, lines) {
  if (description.classes === null) return `Prediction of ${description.target ?? "the target"}`;
  if (lines.length === 1) return `Probability of ${description.classes[1]}`;
  return `Probabilities of ${lines.map((c) => description.classes[c]).join(", ")}`;
}

// The columns whose curves say most where the row starts.
export function tellingColumns(description, model, theta, count) {
  const { columns, low, high, start } = description.inputs;
  const spread = columns.filter((column) => column.kind === "number").map(({ at }) => {
    const ends = new Float64Array(3 * start.length);
    [low[at], start[at], high[at]].forEach((value, k) => { ends.set(start, k * start.length); ends[k * start.length + at] = value; });
    const answers = model.predict(theta, ends, 3), first = [0, 1, 2].map((k) => answers[k * model.outputs + (model.outputs > 1 ? 1 : 0)]);
    return { at, size: Math.max(...first) - Math.min(...first) };
  });
  return new Set(spread.sort((a, b) => b.size - a.size).slice(0, count).map((one) => one.at));
}
