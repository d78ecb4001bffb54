// The likeliest next tokens, as bars with their numbers.

import { softmax } from "../engine/attention.js";
import { Matrix } from "../engine/linear.js";
import { h, set } from "../ui/dom.js";
import { percent } from "../ui/format.js";
import { token } from "./tokens.js";

/** @typedef {import("./runs.js").View} View */

/**
 * Make the list; `most` tokens are shown.
 * @param {{most?: number}} [given]
 */
export function probabilities({ most = 5 } = {}) {
  const title = h("p", { class: "live-title", text: "The next token" });
  const list = h("ol", { class: "bars" });
  const note = h("p", { class: "bars-note" });
  return {
    element: h("section", { class: "probabilities" }, title, list, note),
    /** @param {View} view */
    update({ shown, whole, model, row, broken, state, count }) {
      const step = shown.steps[row];
      if (!step || count === 0) {
        title.textContent = "The next token";
        list.replaceChildren();
        note.textContent = "Nothing is written yet: press play, or go one token on.";
        return;
      }
      title.textContent = `Token ${row + 1}: what could follow`;
      const before = broken && whole.steps[row] ? whole.steps[row].probabilities : null;
      const order = likeliest(step.probabilities, most);
      if (!order.includes(step.id)) order.splice(most - 1, 1, step.id);
      if (before) {
        const usual = likeliest(before, 1)[0];
        if (!order.includes(usual)) order.push(usual);
      }
      list.replaceChildren(...order.map((id) => {
        const { mark, name } = token(model, id);
        const [p, q] = [step.probabilities[id], before?.[id]];
        return bar(mark, name, p, q, id === step.id);
      }));
      const drawn = state.temperature > 0
        ? `Drawn at random, at temperature ${state.temperature}${state.topK ? ` from the ${state.topK} likeliest` : ""}.`
        : "The likeliest is written.";
      const below = before ? " The open bar and the second number: as it was trained." : "";
      note.textContent = drawn + below;
      set(list, { "aria-label": title.textContent });
    },
  };
}

/**
 * @param {string} mark
 * @param {string} name
 * @param {number} p
 * @param {number | undefined} q of the model as it was trained
 * @param {boolean} taken
 */
function bar(mark, name, p, q, taken) {
  const fill = h("span", { class: "bar-fill" });
  fill.style.width = `${100 * p}%`;
  const open = h("span", { class: "bar-open" });
  if (q !== undefined) open.style.width = `${100 * q}%`;
  const said = `${name}: ${exact(p)}${q === undefined ? "" : `, as trained ${exact(q)}`}${taken ? ", written" : ""}`;
  return h("li", { class: taken ? "taken" : "" },
    h("span", { class: "bar-name", "aria-hidden": "true" }, h("bdi", { text: mark })),
    h("span", { class: "bar-track", "aria-hidden": "true" }, fill, q === undefined || q < 0.005 ? null : open),
    h("span", { class: "bar-number", "aria-hidden": "true" }, exact(p),
      q === undefined ? null : h("small", { text: exact(q) })),
    h("span", { class: "live-said", text: said }));
}

/**
 * A probability, to a tenth of a percent: what is not certain does not look so.
 * @param {number} p
 */
export function exact(p) {
  if (p > 0 && p < 0.0005) return "< 0.1 %";
  if (p < 1 && p >= 0.9995) return "> 99.9 %";
  return percent(p, 1);
}

/**
 * The ids of the largest numbers, the largest first.
 * @param {Float32Array} values
 * @param {number} most
 * @returns {number[]}
 */
export function likeliest(values, most) {
  return [...values.keys()].sort((a, b) => values[b] - values[a]).slice(0, most);
}

/**
 * The probabilities of logits, without temperature and filters.
 * @param {Float32Array} logits
 */
export function plainProbabilities(logits) {
  return softmax(new Matrix(1, logits.length, logits)).data;
}
