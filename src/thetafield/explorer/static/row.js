// One control for each column of a table, as it was before it became numbers.

import { boxed, element } from "thetafield/dom.js";

const YEAR = 365.2425, DAY = 86400000;

export function makeRow(description, state, shown) {
  const { columns, low, high, start, rows, source } = description.inputs;
  const set = (change) => {
    const row = Float64Array.from(state.get().row);
    change(row);
    state.set({ row });
  };
  const controls = columns.map((column) => KINDS[column.kind](column, { low, high, set, shown, state }));
  const nodes = [element("h3", {}, "The row")];
  if (rows !== null) nodes.push(picker());
  nodes.push(
    element("div", { class: "controls rows", tabindex: columns.length > 9 ? 0 : null }, ...controls.map((one) => one.node)),
    element("p", { class: "note" }, source),
  );

  function picker() {
    const [count, width] = rows.shape;
    const take = (event) => {
      const k = Number(event.target.value);
      state.set({ row: k < 0 ? Float64Array.from(start) : Float64Array.from(rows.data.subarray(k * width, (k + 1) * width)) });
    };
    const options = Array.from({ length: count }, (_, k) => element("option", { value: k }, `row ${k + 1}`));
    const select = element("select", { "aria-label": "A row of the table", onchange: take }, element("option", { value: -1 }, "typical row"), ...options);
    return element("p", { class: "said" }, element("label", {}, "Take", select));
  }

  return {
    node: element("div", {}, ...nodes),
    draw(now) {
      controls.forEach((one) => one.show(now.row));
    },
  };
}

const KINDS = {
  number(column, { low, high, set, shown, state }) {
    const { at, missing, name } = column;
    const change = (event) => {
      const value = event.target.valueAsNumber;
      if (Number.isFinite(value)) set((row) => { row[at] = value; if (missing !== null) row[missing] = 0; });
    };
    const slider = element("input", { type: "range", min: low[at], max: high[at], step: (high[at] - low[at]) / 500, "aria-label": `${name}, slider`, oninput: change });
    const box = element("input", { type: "number", step: "any", "aria-label": name, onchange: change, onblur: () => state.set({}) });
    const label = shown === null ? element("span", { title: name }, name) : element("label", { title: `Draw the curve of ${name}` },
      element("input", { type: "checkbox", "aria-label": `Curve of ${name}`, checked: shown.has(at), onchange: (event) => { shown[event.target.checked ? "add" : "delete"](at); state.set({}); } }), element("span", {}, name));
    const parts = [label, slider, box];
    const gone = missing === null || missing === undefined ? null : element("input", {
      type: "checkbox", onchange: (event) => set((row) => { row[missing] = event.target.checked ? 1 : 0; if (event.target.checked) row[at] = column.median; }),
    });
    if (gone !== null) parts.push(element("label", { class: "wide said" }, gone, "missing"));
    return {
      node: element("div", { class: "control" }, ...parts),
      show(row) {
        if (document.activeElement !== slider) slider.value = row[at];
        if (document.activeElement !== box) box.value = boxed(row[at], high[at] - low[at]);
        if (gone !== null) gone.checked = row[missing] > 0.5;
      },
    };
  },

  category({ at, name, categories }, { set }) {
    const change = (event) => set((row) => categories.forEach((_, k) => (row[at + k] = Number(event.target.value) === k ? 1 : 0)));
    const options = categories.map((category, k) => element("option", { value: k }, category));
    const select = element("select", { class: "wide", "aria-label": name, onchange: change }, ...options, element("option", { value: -1 }, "another one"));
    return {
      node: element("div", { class: "control" }, element("span", { title: name }, name), select),
      show: (row) => (select.value = categories.findIndex((_, k) => row[at + k] > 0.5)),
    };
  },

  date({ at, name, origin }, { set }) {
    const change = (event) => {
      const days = event.target.valueAsNumber / DAY, turn = (2 * Math.PI * days) / YEAR;
      if (Number.isFinite(days)) set((row) => row.set([Math.sin(turn), Math.cos(turn), (days - origin) / YEAR], at));
    };
    const box = element("input", { type: "date", class: "wide", "aria-label": name, onchange: change });
    return {
      node: element("div", { class: "control" }, element("span", { title: name }, name), box),
      show(row) {
        const days = origin + row[at + 2] * YEAR;
        if (document.activeElement !== box) box.value = new Date(Math.round(days) * DAY).toISOString().slice(0, 10);
      },
    };
  },
};
