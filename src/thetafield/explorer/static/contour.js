// The line along which a function on a grid is zero, by marching squares.

// `values` are columns × rows, bottom row first; `move` and `line` take places in cells, from 0 to columns − 1.
export function contour(values, columns, rows, move, line) {
  const cross = (a, b) => a / (a - b);
  for (let row = 0; row + 1 < rows; row++)
    for (let column = 0; column + 1 < columns; column++) {
      const at = row * columns + column;
      const corners = [values[at], values[at + 1], values[at + columns + 1], values[at + columns]];
      const found = [];
      if (corners[0] > 0 !== corners[1] > 0) found.push([column + cross(corners[0], corners[1]), row]);
      if (corners[1] > 0 !== corners[2] > 0) found.push([column + 1, row + cross(corners[1], corners[2])]);
      if (corners[3] > 0 !== corners[2] > 0) found.push([column + cross(corners[3], corners[2]), row + 1]);
      if (corners[0] > 0 !== corners[3] > 0) found.push([column, row + cross(corners[0], corners[3])]);
      for (let k = 0; k + 1 < found.length; k += 2) {
        move(...found[k]);
        line(...found[k + 1]);
      }
    }
}
