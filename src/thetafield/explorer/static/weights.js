// What came with the page: a description, and the arrays it refers to as {"$": number}.

export async function readDescription(description, base64) {
  const bytes = joined(await inflated(Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0))));
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

async function inflated(packed) {
  if (!("DecompressionStream" in globalThis)) throw new Error("it needs a browser of 2023 or later, which can unpack its numbers.");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// All first bytes of four come first, then all second ones and so on.
function joined(planes) {
  const count = planes.length / 4, bytes = new Uint8Array(planes.length);
  for (let i = 0, at = 0; i < count; i++)
    for (let k = 0; k < 4; k++) bytes[at++] = planes[k * count + i];
  return bytes;
}
