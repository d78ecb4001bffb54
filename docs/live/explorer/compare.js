// Both outputs, one above the other: as the model was trained, and as it is set now.

import { h, set } from "../ui/dom.js";
import { exact } from "./probabilities.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./runs.js").Writing} Writing */

/** Make the board. */
export function compare() {
  const trained = row("as trained");
  const now = row("now");
  const forced = row("now, given the answer");
  const verdict = h("p", { class: "compare-verdict", role: "status" });
  return {
    element: h("div", { class: "compare" }, h("div", { class: "compare-rows" },
      trained.element, now.element, forced.element), verdict),
    /** @param {View} view */
    update({ whole, shown, broken, forced: given, state }) {
      const length = Math.max(whole.tokens.length, shown.tokens.length);
      trained.update(whole.tokens.map(({ mark }) => ({ mark })), length);
      set(now.element, { hidden: !broken });
      now.update([...Array(length).keys()].map((t) => ({
        mark: shown.tokens[t]?.mark ?? "·", changed: shown.tokens[t]?.id !== whole.tokens[t]?.id,
      })), length);
      set(forced.element, { hidden: !given });
      forced.update((given ?? []).map(({ mark }, t) => ({
        mark, changed: mark !== whole.tokens[t]?.mark,
      })), length);
      const text = broken ? told(whole, shown, state.temperature > 0) : "Nothing is changed.";
      if (verdict.textContent !== text) verdict.textContent = text;
    },
  };
}

/**
 * Say what differs.
 * @param {Writing} whole
 * @param {Writing} shown
 * @param {boolean} drawn
 */
function told(whole, shown, drawn) {
  const length = Math.max(whole.tokens.length, shown.tokens.length);
  const differ = [...Array(length).keys()].filter(
    (t) => whole.tokens[t]?.id !== shown.tokens[t]?.id);
  if (differ.length) {
    if (!shown.text) return "It writes nothing: the end token (▮) comes first.";
    const places = differ.map((t) => t + 1).join(", ");
    const what = differ.length === 1 ? "One token differs" : `${differ.length} tokens differ`;
    return `${what} (≠), at ${places}.`;
  }
  if (drawn) return "The same text was drawn.";
  // What was sure before, and is less so now.
  const falls = whole.chosen.map((p, t) => ({ p, q: shown.chosen[t], t }))
    .sort((a, b) => (b.p - b.q) - (a.p - a.q));
  const { p, q, t } = falls[0];
  return `The same text. The largest change: token ${t + 1}, from ${exact(p)} to ${exact(q)}.`;
}

/**
 * @typedef {Object} Cell
 * @property {string} mark
 * @property {boolean} [changed]
 */

/** @param {string} label */
function row(label) {
  const cells = h("span", { class: "compare-cells", dir: "ltr" });
  return {
    element: h("div", { class: "compare-row" }, h("span", { class: "compare-name", text: label }), cells),
    /** @param {Cell[]} content @param {number} length */
    update(content, length) {
      cells.style.setProperty("--length", String(length));
      cells.replaceChildren(...content.map(({ mark, changed }) =>
        h("span", { class: changed ? "compare-cell changed" : "compare-cell" },
          h("bdi", { text: mark }),
          changed ? h("small", {}, h("span", { "aria-hidden": "true", text: "≠" }),
            h("span", { class: "live-said", text: " differs " })) : null)));
    },
  };
}
