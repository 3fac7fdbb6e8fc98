// Long work in short pieces between frames; a new piece of the same kind of work replaces the old one.

const PIECE = 7; // milliseconds

export function makeLater() {
  let current = null;
  return (work) => {
    const mine = work;
    current = mine;
    const go = () => {
      if (current !== mine) return;
      const end = performance.now() + PIECE;
      while (performance.now() < end)
        if (work.next().done) {
          if (current === mine) current = null;
          return;
        }
      setTimeout(go, 4);
    };
    setTimeout(go, 0);
  };
}
