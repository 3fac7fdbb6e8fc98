// The descriptors as numbers: which two are axes, a slider for each, and how far the field is trusted here.

import { boxed, byId, element, percent, short } from "thetafield/dom.js";

export function makeDescriptors(description, model, state) {
  const names = description.descriptors;
  const sliders = names.map((name, k) => control(name, k));
  byId("descriptors").append(...sliders.map((one) => one.node));
  const selects = names.length > 2 ? ["x", "y"].map(axis) : [];
  byId("axes").append(...selects);
  showRelevance();
  const bar = element("span"), number = element("b");
  byId("trust").append("Trust", element("div", { class: "track", "aria-hidden": "true" }, bar), number);

  function control(name, k) {
    const low = description.low[k] - description.margin * model.span[k];
    const high = description.high[k] + description.margin * model.span[k];
    const change = (event) => {
      const value = event.target.valueAsNumber;
      if (!Number.isFinite(value)) return;
      const z = [...state.get().z];
      z[k] = value;
      state.set({ z });
    };
    const slider = element("input", {
      type: "range", min: low, max: high, step: (high - low) / 500, "aria-label": `${name}, slider`, oninput: change,
    });
    // Left without a number in it, it shows where z is.
    const box = element("input", { type: "number", step: "any", "aria-label": name, onchange: change, onblur: () => state.set({}) });
    return { slider, box, node: element("div", { class: "control" }, element("span", { title: name }, name), slider, box) };
  }

  // How much each descriptor drives the shift, the strongest first; nothing where that is not known.
  function showRelevance() {
    const known = Object.entries(description.relevance).filter(([, [value]]) => value > 0);
    byId("relevance-title").hidden = known.length === 0;
    byId("relevance").append(...known.sort((a, b) => b[1][0] - a[1][0]).map(([name, [value]]) => {
      const fill = element("span");
      fill.style.width = `${100 * value}%`;
      return element("div", { class: "bar" }, element("span", { title: name }, name),
        element("div", { class: "track" }, fill), element("span", {}, value.toFixed(2)));
    }));
  }

  function axis(which) {
    const options = names.map((name, k) => element("option", { value: k, selected: state.get()[which] === k }, name));
    const change = (event) => {
      const now = state.get(), chosen = Number(event.target.value), other = which === "x" ? "y" : "x";
      // The other axis takes what this one leaves, so that they never show the same descriptor.
      state.set(now[other] === chosen ? { [which]: chosen, [other]: now[which] } : { [which]: chosen });
    };
    return element("label", {}, which === "x" ? "→" : "↑", element("select", { "aria-label": `${which} axis`, onchange: change }, ...options));
  }

  return {
    draw(now) {
      sliders.forEach(({ slider, box }, k) => {
        if (document.activeElement !== slider) slider.value = now.z[k];
        if (document.activeElement !== box) box.value = boxed(now.z[k], model.span[k]);
        slider.setAttribute("aria-valuetext", short(now.z[k]));
      });
      selects.forEach((label, k) => (label.lastChild.value = k === 0 ? now.x : now.y));
      const share = Number.isFinite(now.trust) ? now.trust : 0;
      bar.style.width = `${100 * share}%`;
      number.textContent = percent(share);
    },
  };
}
