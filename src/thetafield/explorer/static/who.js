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
  const name = (index) => description.domains?.[index] ?? `${index + 1}`;

  return {
    node: element("div", {}, stats, element("div", { class: "scroll" }, table)),
    draw(now) {
      const shares = new Map(now.charts.map((one) => [one.index, one.share]));
      const listed = [...now.charts.map((one) => one.index), ...now.nearest.map((one) => one.index)];
      const indices = [...new Set(listed)].slice(0, Math.max(NEAREST, now.charts.length));
      stats.textContent = sentence(now);
      body.replaceChildren(...indices.map((index) => {
        const fill = element("span");
        fill.style.width = `${100 * (shares.get(index) ?? 0)}%`;
        const share = shares.has(index) ? element("div", { class: "track", title: percent(shares.get(index)) }, fill) : "–";
        const near = now.nearest.find((one) => one.index === index);
        const value = model.charts === null ? (near ? short(near.distance, 2) : "–") : share;
        const visit = element("button", { type: "button", "aria-label": `Go to domain ${name(index)}`, onclick: () => state.set({ z: [...anchors[index]] }) }, "go");
        return element("tr", {}, element("td", {}, name(index)), ...shown.map((_, k) => element("td", {}, short(anchors[index][k], 3))),
          element("td", { class: "share" }, value), element("td", {}, visit));
      }));
    },
  };

  function sentence(now) {
    if (model.charts === null) return "This field is one function of z, without charts; these training domains are nearest.";
    const count = now.charts.length;
    const added = now.alpha === null ? "" : ` What they carry is added to the base with weight ${short(now.alpha, 3)}.`;
    return `${count === 1 ? "One chart answers" : `${count} charts answer together`}, out of ${anchors.length} training domains.${added}`;
  }
}
