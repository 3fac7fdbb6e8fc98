// θ between the nodes of a grid, by multilinear interpolation of its principal coordinates.

export function makeGrid(part) {
  const rank = part.coordinates.shape[1], dim = part.theta_dim;
  const corners = (z) => {
    const cells = Array.from(z, (value) => {
      const place = ((value - part.low) / (part.high - part.low)) * (part.points - 1);
      const inside = Math.min(Math.max(place, 0), part.points - 1);
      const cell = Math.min(Math.floor(inside), part.points - 2);
      return { cell, share: inside - cell };
    });
    const found = [];
    for (let corner = 0; corner < 2 ** cells.length; corner++) {
      let weight = 1, node = 0;
      cells.forEach(({ cell, share }, k) => {
        const up = (corner >> k) & 1;
        weight *= up ? share : 1 - share;
        node = node * part.points + cell + up;
      });
      if (weight > 0) found.push({ node, weight });
    }
    return found;
  };
  return {
    theta: (z) => {
      const mixed = new Float64Array(rank);
      for (const { node, weight } of corners(z))
        for (let k = 0; k < rank; k++) mixed[k] += weight * part.coordinates.data[node * rank + k];
      const theta = Float64Array.from(part.mean.data);
      for (let k = 0; k < rank; k++)
        for (let i = 0; i < dim; i++) theta[i] += mixed[k] * part.directions.data[k * dim + i];
      return theta;
    },
    trust:
      part.trust === null
        ? null
        : (z) => corners(z).reduce((sum, { node, weight }) => sum + weight * part.trust.data[node], 0),
  };
}
