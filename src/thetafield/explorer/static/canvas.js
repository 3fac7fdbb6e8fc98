// A canvas as sharp as the screen, and the axes that several views share.

import { short } from "thetafield/dom.js";

export function sharpen(canvas) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const width = canvas.clientWidth || 300, height = canvas.clientHeight || 200;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// About `count` round numbers from low to high.
export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

// From data to the pixels of a box, and back.
export function frame(box, x, y) {
  return {
    box,
    x: (value) => box.left + ((value - x[0]) / (x[1] - x[0])) * box.width,
    y: (value) => box.top + box.height - ((value - y[0]) / (y[1] - y[0])) * box.height,
    dataX: (pixel) => x[0] + ((pixel - box.left) / box.width) * (x[1] - x[0]),
    dataY: (pixel) => y[0] + ((box.top + box.height - pixel) / box.height) * (y[1] - y[0]),
    rangeX: x,
    rangeY: y,
  };
}

export function drawAxes(context, at, colours, names, font = 11.5) {
  const { left, top, width, height } = at.box;
  context.font = `${font}px system-ui, sans-serif`;
  context.fillStyle = colours.soft;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const value of ticks(...at.rangeX, Math.max(3, width / 74))) context.fillText(short(value), at.x(value), top + height + 5);
  context.textAlign = "right";
  context.textBaseline = "middle";
  if (names.y !== null) for (const value of ticks(...at.rangeY, Math.max(3, height / 52))) context.fillText(short(value), left - 6, at.y(value));
  if (names.x) {
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillStyle = colours.ink;
    context.fillText(names.x, left + width / 2, top + height + 35);
  }
  if (names.y) {
    context.save();
    context.translate(left - 47, top + height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = colours.ink;
    context.fillText(names.y, 0, 0);
    context.restore();
  }
}

// A picture of columns × rows cells, bottom row first, painted into a box.
export function paintCells(context, box, columns, rows, colourOf, smooth = true) {
  const cells = document.createElement("canvas");
  cells.width = columns;
  cells.height = rows;
  const inner = cells.getContext("2d");
  const image = inner.createImageData(columns, rows);
  for (let row = 0, cell = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, cell++) {
      const at = 4 * ((rows - 1 - row) * columns + column);
      const [red, green, blue, alpha = 255] = colourOf(cell);
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = alpha;
    }
  inner.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = smooth;
  context.imageSmoothingQuality = "high";
  context.drawImage(cells, box.left, box.top, box.width, box.height);
}
