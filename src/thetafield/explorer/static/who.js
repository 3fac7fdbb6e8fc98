// Who answers at z: the charts in use with their shares, and the nearest training domains.

import { breakable, element, percent, short } from "thetafield/dom.js";

const NEAREST = 5;

export function makeWho(description, model, state, anchors) {
  const stats = element("p", { class: "stats" }), body = element("tbody");
  const shown = description.descriptors.slice(0, 3);
  const head = (name, attributes) => element("th", { scope: "col", ...attributes }, ...breakable(name));
  const last = model.charts === null ? head("dist.", { class: "share", title: "distance, with descriptors scaled to their range" }) : head("share", { class: "share" });
  const heads = [head("domain"), ...shown.map((name) => head(name, { title: name })), last, element("td")];
  const table = element("table", { class: shown.length > 2 ? "who many" : "who" }, element("thead", {}, element("tr", {}, ...heads)), body);
  const rows = [];
  const name = (index) => description.domains?.[index] ?? `${index + 1}`;

  return {
    node: element("div", {}, stats, element("div", { class: "scroll" }, table)),
    draw(now) {
      const shares = new Map(now.charts.map((one) => [one.index, one.share]));
      const listed = [...now.charts.map((one) => one.index), ...now.nearest.map((one) => one.index)];
      const indices = [...new Set(listed)].slice(0, Math.max(NEAREST, now.charts.length));
      stats.textContent = sentence(now);
      while (rows.length < indices.length) rows.push(makeRow());
      rows.forEach((row, at) => {
        row.node.hidden = at >= indices.length;
        if (!row.node.hidden) fillRow(row, indices[at], shares, now);
      });
    },
  };

  // Rows stay and are filled anew: one that was replaced would take the keyboard's focus with it.
  function makeRow() {
    const row = { index: 0, cells: [...Array(2 + shown.length)].map(() => element("td")) };
    row.visit = element("button", { type: "button", onclick: () => state.set({ z: [...anchors[row.index]] }) }, "go");
    row.cells.at(-1).className = "share";
    row.node = element("tr", {}, ...row.cells, element("td", {}, row.visit));
    body.append(row.node);
    return row;
  }

  function fillRow(row, index, shares, now) {
    row.index = index;
    row.visit.setAttribute("aria-label", `Go to domain ${name(index)}`);
    row.cells[0].textContent = row.cells[0].title = name(index);
    shown.forEach((_, k) => { row.cells[k + 1].textContent = short(anchors[index][k], 3); });
    const near = now.nearest.find((one) => one.index === index), last = row.cells.at(-1);
    if (model.charts === null) last.textContent = near ? short(near.distance, 2) : "–";
    else if (!shares.has(index)) last.textContent = "–";
    else {
      const fill = element("span");
      fill.style.width = `${100 * shares.get(index)}%`;
      last.replaceChildren(element("div", { class: "track", title: percent(shares.get(index)) }, fill));
    }
  }

  function sentence(now) {
    if (description.forest !== null) return "Trees answer for all domains at once; these training domains are nearest.";
    if (description.field.kind === "constant") return "One model answers everywhere; these training domains are nearest.";
    if (model.charts === null) return "This field is one function of z, without charts; these training domains are nearest.";
    const count = now.charts.length;
    const added = now.alpha === null ? "" : ` What they carry is added to the base with weight ${short(now.alpha, 3)}.`;
    return `${count === 1 ? "One chart answers" : `${count} charts answer together`}, out of ${anchors.length} training domains.${added}`;
  }
}
