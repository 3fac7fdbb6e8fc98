// Boosted trees: what the leaves add up to, for inputs and the descriptor as columns of one table.

const IMPOSSIBLE = 1e-12; // probability of a class that no training sample has

export function makeForest(part) {
  const whole = ({ data }) => Int32Array.from(data);
  const feature = whole(part.feature), roots = whole(part.roots), column = whole(part.column);
  const left = whole(part.left).map((step, node) => node + step), right = whole(part.right).map((step, node) => node + step);
  const threshold = part.threshold.data, missingLeft = part.missing_left.data, value = part.value.data;
  const start = part.baseline.data, sums = start.length, { labels, num_outputs: outputs } = part;

  const next = (node, seen) => ((seen !== seen ? missingLeft[node] : seen <= threshold[node]) ? left[node] : right[node]);
  const thinned = new WeakMap();

  // `z` is the scaled descriptor, which stands where a field has its θ.
  return (z, x, count) => {
    const width = x.length / count, answers = new Float64Array(count * sums);
    if (!thinned.has(z)) thinned.set(z, thin(z, width));
    const { first, less, more } = thinned.get(z);
    for (let s = 0; s < answers.length; s++) answers[s] = start[s % sums];
    for (let tree = 0; tree < roots.length; tree++)
      for (let s = 0, row = 0, to = column[tree]; s < count; s++, row += width, to += sums) {
        let node = first[tree];
        while (less[node] !== node) {
          const seen = x[row + feature[node]];
          node = (seen !== seen ? missingLeft[node] : seen <= threshold[node]) ? less[node] : more[node];
        }
        answers[to] += value[node];
      }
    return labels.length ? logarithms(answers, count) : answers;
  };

  // The trees at one z: nodes that ask for the descriptor are passed by, once for all samples.
  function thin(z, width) {
    const past = (node) => {
      while (feature[node] >= width) node = next(node, z[feature[node] - width]);
      return node;
    };
    return { first: roots.map(past), less: left.map(past), more: right.map(past) };
  }

  // Sums as logarithms of probabilities; one sum tells two classes apart.
  function logarithms(answers, count) {
    const result = new Float64Array(count * outputs).fill(Math.log(IMPOSSIBLE));
    for (let s = 0; s < count; s++) {
      const own = sums === 1 && labels.length === 2 ? [0, answers[s]] : answers.subarray(s * sums, (s + 1) * sums);
      const top = Math.max(...own);
      let total = 0;
      for (const each of own) total += Math.exp(each - top);
      labels.forEach((label, k) => {
        result[s * outputs + label] = Math.log(Math.max(Math.exp(own[k] - top) / total, IMPOSSIBLE));
      });
    }
    return result;
  }
}
