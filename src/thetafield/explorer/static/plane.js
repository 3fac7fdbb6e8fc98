// The descriptor plane: training domains as points, trust as shading, and z, which is dragged or moved by keys.

import { drawAxes, frame, paintCells, sharpen } from "thetafield/canvas.js";
import { css, mix, parse } from "thetafield/colours.js";
import { byId, short } from "thetafield/dom.js";
import { makeLater } from "thetafield/later.js";

const COARSE = 16, FINE = 56; // cells of the shading
const STEP = 0.01, LEAP = 0.05; // of the range, for the arrow keys

export function makePlane(description, model, state, anchors) {
  const canvas = byId("plane"), later = makeLater();
  const names = description.descriptors, flat = names.length === 1;
  const range = (k) => [-description.margin, 1 + description.margin].map((s) => description.low[k] + s * model.span[k]);
  let at = null, shading = null, shaded = "", colours = null, seen = null;
  canvas.classList.toggle("line", flat);
  canvas.setAttribute("aria-label", `Descriptor z over ${names.slice(0, 2).join(" and ")}: arrow keys move it`);
  canvas.setAttribute("aria-describedby", "plane-hint");
  byId("plane-hint").textContent =
    `Drag the ring, or move it with the arrow keys (Shift for longer steps). Dots are the ${anchors.length} training ` +
    "domains; the tint shows where the model can be trusted" +
    (model.charts === null ? "." : "; lines lead to the domains that answer.");

  // Where a move along the axes leads, kept inside the shown range.
  function move(x, y) {
    const now = state.get(), z = [...now.z];
    const inside = (value, k) => Math.min(Math.max(value, range(k)[0]), range(k)[1]);
    z[now.x] = inside(x, now.x);
    if (!flat) z[now.y] = inside(y, now.y);
    state.set({ z });
  }
  const follow = (event) => {
    const box = canvas.getBoundingClientRect();
    move(at.dataX(event.clientX - box.left), at.dataY(event.clientY - box.top));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    follow(event);
  });
  canvas.addEventListener("pointermove", (event) => canvas.hasPointerCapture(event.pointerId) && follow(event));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
    const now = state.get();
    if (event.key === "Home") move(middle(now.x), flat ? 0 : middle(now.y));
    else if (way) {
      const step = event.shiftKey ? LEAP : STEP;
      move(now.z[now.x] + way[0] * step * model.span[now.x], flat ? 0 : now.z[now.y] + way[1] * step * model.span[now.y]);
    } else return;
    event.preventDefault();
  });
  const middle = (k) => (description.low[k] + description.high[k]) / 2;

  function* shade(now, size) {
    const rows = flat ? 1 : size, values = new Float64Array(size * rows), z = [...now.z];
    for (let row = 0, cell = 0; row < rows; row++)
      for (let column = 0; column < size; column++, cell++) {
        z[now.x] = between(range(now.x), (column + 0.5) / size);
        if (!flat) z[now.y] = between(range(now.y), (row + 0.5) / rows);
        values[cell] = model.trust(z);
        yield;
      }
    shading = { columns: size, rows, values };
    paint(seen);
    if (size === COARSE) yield* shade(now, FINE);
  }

  function paint(now) {
    const { context, width, height } = sharpen(canvas);
    const box = { left: flat ? 14 : 56, top: 8, width: width - (flat ? 28 : 66), height: height - 48 };
    at = frame(box, range(now.x), flat ? [0, 1] : range(now.y));
    if (shading) {
      const from = parse(colours.card), to = parse(colours.trust), strength = colours.dark ? 0.42 : 0.3;
      paintCells(context, box, shading.columns, shading.rows, (cell) => mix(from, to, strength * shading.values[cell]));
    }
    drawAxes(context, at, colours, { x: names[now.x], y: flat ? null : names[now.y] });
    const here = [at.x(now.z[now.x]), flat ? box.top + box.height / 2 : at.y(now.z[now.y])];
    const place = (z) => [at.x(z[now.x]), flat ? box.top + box.height / 2 : at.y(z[now.y])];
    for (const { index, share } of now.charts) {
      const [x, y] = place(anchors[index]);
      context.strokeStyle = css(parse(colours.accent), 0.35 + 0.6 * share);
      context.lineWidth = 1 + 3.5 * share;
      context.beginPath();
      context.moveTo(...here);
      context.lineTo(x, y);
      context.stroke();
    }
    const used = new Set(now.charts.map((one) => one.index));
    anchors.forEach((z, index) => {
      const [x, y] = place(z);
      context.fillStyle = css(parse(used.has(index) ? colours.accent : colours.ink), used.has(index) ? 1 : depth(now, z));
      context.beginPath();
      context.arc(x, y, used.has(index) ? 4.5 : 3, 0, 7);
      context.fill();
    });
    context.lineWidth = 3;
    context.strokeStyle = colours.accent;
    context.fillStyle = colours.card;
    context.beginPath();
    context.arc(...here, 8.5, 0, 7);
    context.fill();
    context.stroke();
    context.fillStyle = colours.accent;
    context.beginPath();
    context.arc(...here, 2.2, 0, 7);
    context.fill();
  }

  // Domains that differ in the descriptors not shown are fainter.
  function depth(now, z) {
    let sum = 0;
    z.forEach((value, k) => {
      if (k !== now.x && k !== now.y) sum += ((value - now.z[k]) / model.span[k]) ** 2;
    });
    return 0.18 + 0.57 * Math.exp(-8 * sum);
  }

  return {
    draw(now, fine) {
      colours = now.colours;
      seen = now;
      const others = now.z.filter((_, k) => k !== now.x && k !== now.y);
      const key = [now.x, now.y, ...others.map((value) => short(value, 6))].join();
      if (key !== shaded) {
        shaded = key;
        later(shade(now, COARSE));
      }
      paint(now);
    },
  };
}

const between = ([low, high], share) => low + share * (high - low);
