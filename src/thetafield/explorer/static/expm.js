// exp(tA)·v by action: a Taylor series on scaled steps, never the matrix exponential itself.

const LARGEST_STEP = 4;
const LARGEST_NORM = 2048; // beyond this the series says nothing, and the answer is no number
const MOST_TERMS = 60;
const ENOUGH = 1e-12;

// α with ‖Aⁿ‖ ≤ αⁿ for n ≥ 12 (Al-Mohy and Higham, 2011): far below ‖A‖ for the matrices that networks emit.
export function normBound(matrix, m) {
  const square = product(matrix, matrix, m);
  const fourth = product(square, square, m);
  const fifth = product(fourth, matrix, m);
  return Math.min(frobenius(matrix), Math.max(frobenius(fourth) ** (1 / 4), frobenius(fifth) ** (1 / 5)));
}

export function expmAction(matrix, bound, t, vector) {
  const size = bound * Math.abs(t);
  const m = vector.length;
  if (t === 0) return vector;
  if (!(size <= LARGEST_NORM)) return new Float64Array(m).fill(NaN);
  const steps = Math.max(1, Math.ceil(size / LARGEST_STEP));
  let value = Float64Array.from(vector);
  for (let step = 0; step < steps; step++) {
    let term = value;
    const sum = Float64Array.from(value);
    let small = 0;
    for (let k = 1; k <= MOST_TERMS && small < 2; k++) {
      term = apply(matrix, term, t / (steps * k), m);
      let largest = 0, whole = 0;
      for (let i = 0; i < m; i++) {
        sum[i] += term[i];
        largest = Math.max(largest, Math.abs(term[i]));
        whole = Math.max(whole, Math.abs(sum[i]));
      }
      // Two in turn, since one term alone may vanish by chance.
      small = largest <= ENOUGH * whole ? small + 1 : 0;
    }
    value = sum;
  }
  return value;
}

function apply(matrix, vector, scale, m) {
  const result = new Float64Array(m);
  for (let row = 0, at = 0; row < m; row++) {
    let sum = 0;
    for (let column = 0; column < m; column++) sum += matrix[at++] * vector[column];
    result[row] = scale * sum;
  }
  return result;
}

function product(a, b, m) {
  const result = new Float64Array(m * m);
  for (let i = 0; i < m; i++)
    for (let k = 0; k < m; k++) {
      const value = a[i * m + k];
      for (let j = 0; j < m; j++) result[i * m + j] += value * b[k * m + j];
    }
  return result;
}

function frobenius(matrix) {
  let sum = 0;
  for (let i = 0; i < matrix.length; i++) sum += matrix[i] * matrix[i];
  return Math.sqrt(sum);
}
