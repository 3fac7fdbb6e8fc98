// What is being looked at: the descriptor z, the axes of the plane, and the inputs. Every change asks for one frame.

const SETTLED = 140; // milliseconds without a change after which the fine picture is drawn

export function makeState(first) {
  const state = { ...first };
  const listeners = [];
  let asked = false, timer = 0;

  function draw(fine) {
    asked = false;
    for (const listener of listeners) listener(state, fine);
  }
  return {
    get: () => state,
    listen: (listener) => listeners.push(listener),
    set(patch) {
      Object.assign(state, patch);
      if (!asked) {
        asked = true;
        requestAnimationFrame(() => draw(false));
      }
      clearTimeout(timer);
      timer = setTimeout(() => requestAnimationFrame(() => draw(true)), SETTLED);
    },
  };
}
