// What the model says for the chosen row: a number, or the probability of every class.

import { element, percent, short } from "thetafield/dom.js";
import { softmax } from "thetafield/model.js";

const MOST = 8; // classes shown

export function makeAnswer(description, model) {
  const said = element("p", { class: "said" }), big = element("p", { class: "big" }), bars = element("div", { class: "bars" });
  const target = description.target ?? "the target";
  return {
    node: element("div", {}, said, big, bars),
    draw(now) {
      const answers = model.predict(now.theta, now.row, 1);
      if (!answers.every(Number.isFinite)) {
        said.textContent = "θ(z) is no number this far from the training domains.";
        big.textContent = "–";
        bars.replaceChildren();
        return;
      }
      if (description.classes === null) {
        said.textContent = `Prediction of ${target} for this row at this z`;
        big.textContent = Array.from(answers, (value) => short(value, 5)).join(", ");
        return;
      }
      const shares = softmax(answers, model.outputs, 1);
      const order = Array.from(shares.keys()).sort((a, b) => shares[b] - shares[a]).slice(0, MOST);
      said.textContent = "Most probable class for this row at this z";
      const label = description.classes[order[0]];
      big.textContent = /^[-\d.]+$/.test(label) ? `class ${label}` : label; // a bare number would read as a value
      // In the order of the classes, so that bars do not change places while z moves.
      bars.replaceChildren(...order.sort((a, b) => a - b).map((c) => {
        const fill = element("span");
        fill.style.width = `${100 * shares[c]}%`;
        fill.style.background = now.colours.classes[c % 8];
        return element("div", { class: "bar" }, element("span", { title: description.classes[c] }, description.classes[c]),
          element("div", { class: "track" }, fill), element("span", {}, percent(shares[c])));
      }));
    },
  };
}
