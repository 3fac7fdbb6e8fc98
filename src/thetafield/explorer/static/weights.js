// What came with the page: a description, and the arrays it refers to as {"$": number}.

export function readDescription(description, base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const tables = description.arrays.map(({ shape, type, start }) => {
    const count = shape.reduce((a, b) => a * b, 1);
    const data = type === "uint8" ? bytes.subarray(start, start + count) : new Float32Array(bytes.buffer, start, count);
    return { data, shape };
  });
  return resolve(description, tables);
}

function resolve(value, tables) {
  if (Array.isArray(value)) return value.map((part) => resolve(part, tables));
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return tables[value.$];
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolve(part, tables)]));
}
