// The surface z ↦ θ(z) over the shown plane, projected on the three directions in which θ moves most.

import { sharpen } from "thetafield/canvas.js";
import { css, mix, parse } from "thetafield/colours.js";
import { element, percent, short } from "thetafield/dom.js";
import { makeLater } from "thetafield/later.js";

const MESH = 25;
const LINE = 121; // places along one descriptor
const TILT = 0.45, LIFT = 0.75; // how much depth and height raise a place in the picture
const RADIUS = 1.1; // of the turning surface, whose sides are two long

export function makeManifold(description, model, state) {
  const part = description.surface;
  if (part === null) return { node: element("p", { class: "note" }, "θ is the same at every z: this field is one model for all domains."), draw() {} };
  const canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "θ over the plane, projected on three directions; left and right arrows turn it" });
  const later = makeLater(), components = part.shares.length, dim = part.mean.data.length;
  const node = element("div", {}, canvas, element("p", { class: "note" },
    `All ${dim.toLocaleString("en")} parameters, on the ${components} directions in which they move most ` +
    `(${part.shares.map((one) => percent(one)).join(", ")} of it), each at its own scale; drag to turn.`));
  const flat = description.descriptors.length === 1;
  let angle = -0.6, mesh = null, made = "", seen = null;

  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) turn(event.movementX * 0.012);
  });
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -0.12, ArrowRight: 0.12 }[event.key];
    if (way) { turn(way); event.preventDefault(); }
  });
  const turn = (by) => { angle += by; if (seen) paint(seen); };

  const projected = (theta) => {
    const point = [0, 0, 0];
    for (let c = 0; c < components; c++)
      for (let k = 0; k < dim; k++) point[c] += (theta[k] - part.mean.data[k]) * part.directions.data[c * dim + k];
    return point;
  };

  function* build(now) {
    const columns = flat ? LINE : MESH, rows = flat ? 1 : MESH, places = [], z = [...now.z];
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        z[now.x] = description.low[now.x] + (column / (columns - 1)) * model.span[now.x];
        if (!flat) z[now.y] = description.low[now.y] + (row / (rows - 1)) * model.span[now.y];
        places.push(projected(model.theta(z)));
        yield;
      }
    mesh = { columns, rows, places, ...extent(places.filter((place) => place.every(Number.isFinite))) };
    if (seen) paint(seen);
  }

  function paint(now) {
    seen = now;
    const { context, width, height } = sharpen(canvas);
    if (mesh === null) {
      context.fillStyle = now.colours.soft;
      context.font = "13px system-ui, sans-serif";
      context.fillText("…", width / 2, height / 2);
      return;
    }
    // Seen from above at an angle: what is farther away is drawn higher, and first.
    const cos = Math.cos(angle), sin = Math.sin(angle), { centre, reach } = mesh;
    const size = Math.min((0.47 * width) / RADIUS, (0.47 * height) / (TILT * RADIUS + LIFT));
    const see = (place) => {
      const [a, b, c] = place.map((value, k) => (value - centre[k]) / reach[k]), depth = a * sin + b * cos;
      return { x: width / 2 + size * (a * cos - b * sin), y: height / 2 + size * (TILT * depth - LIFT * c), depth };
    };
    const spots = mesh.places.map(see);
    const { columns, rows } = mesh, faces = [];
    for (let row = 0; row + 1 < rows; row++)
      for (let column = 0; column + 1 < columns; column++) {
        const at = row * columns + column, corners = [at, at + 1, at + columns + 1, at + columns].map((k) => spots[k]);
        faces.push({ corners, share: column / (columns - 2), bright: row / (rows - 2), depth: corners.reduce((s, p) => s + p.depth, 0) });
      }
    faces.sort((a, b) => a.depth - b.depth);
    context.lineJoin = "round";
    for (const { corners, share, bright } of faces) {
      context.beginPath();
      corners.forEach((p, k) => context[k ? "lineTo" : "moveTo"](p.x, p.y));
      context.closePath();
      const ink = mix(now.colours.scale(0.12 + 0.8 * share), parse(now.colours.card), 0.34 * (1 - bright));
      context.fillStyle = css(ink, 0.88);
      context.strokeStyle = css(mix(ink, parse(now.colours.ink), 0.16), 0.8);
      context.lineWidth = 0.6;
      context.fill();
      context.stroke();
    }
    if (rows === 1) {
      context.lineWidth = 3;
      for (let k = 0; k + 1 < columns; k++) {
        context.beginPath();
        context.moveTo(spots[k].x, spots[k].y);
        context.lineTo(spots[k + 1].x, spots[k + 1].y);
        context.strokeStyle = css(now.colours.scale(0.12 + (0.8 * k) / columns));
        context.stroke();
      }
    }
    const here = see(projected(now.theta));
    context.beginPath();
    context.arc(here.x, here.y, 6.5, 0, 7);
    context.fillStyle = now.colours.card;
    context.strokeStyle = now.colours.accent;
    context.lineWidth = 3;
    context.fill();
    context.stroke();
  }

  return {
    node,
    draw(now) {
      const others = now.z.filter((_, k) => k !== now.x && k !== now.y);
      const key = [now.x, now.y, ...others.map((value) => short(value, 6))].join();
      if (key !== made) {
        made = key;
        later(build({ ...now }));
      }
      paint({ ...now });
    },
  };
}

// The middle of the places along each direction, and how far they reach from it: each direction has its own scale.
function extent(places) {
  const ends = [0, 1, 2].map((k) => [Math.min(...places.map((p) => p[k])), Math.max(...places.map((p) => p[k]))]);
  return { centre: ends.map(([low, high]) => (low + high) / 2), reach: ends.map(([low, high]) => (high - low) / 2 || 1) };
}
