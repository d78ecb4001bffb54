// A tour in eight steps. What it says of the model is computed while it is said.

import { h, set } from "../ui/dom.js";
import { fixed, percent } from "../ui/format.js";
import { sumAfter } from "./path.js";
import { arrow } from "./path-view.js";
import { exact } from "./probabilities.js";
import { START, TRAINED, WITHOUT_MASK } from "./state.js";
import { norm } from "./strip.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./runs.js").Writing} Writing */
/** @typedef {import("./state.js").State} State */

/**
 * @typedef {Object} Stop
 * @property {string} title
 * @property {string} target what is looked at: a class in the explorer
 * @property {Partial<State>} state what is set, beside an unbroken model and the book's date
 * @property {(view: View, attempt: (patch: Partial<State>) => Promise<View>) =>
 *   string | Promise<string>} text
 */

const CROSS = "decoder.blocks.1.cross_attention";
const FIVE = "target:6"; // the 5 of 1979-05-03

/** @type {readonly Stop[]} */
export const STOPS = [
  {
    title: "It reads, and writes",
    target: "stage-box",
    state: {},
    text: ({ source, shown }) =>
      `The model has read ${source.length} tokens, a character each and one for the end, and has written ${shown.tokens.length}. ` +
      `It wrote each with a probability of ${exact(Math.min(...shown.chosen))} or more. It learned this from examples alone.`,
  },
  {
    title: "A head looks",
    target: "stage-box",
    state: { token: FIVE },
    text: ({ record, source, row, shown }) => {
      const weights = record?.attention(CROSS).weights[2].row(row) ?? [];
      const most = [...weights].indexOf(Math.max(...weights));
      return `To write the ${shown.tokens[row].name} of the month, head 3 of the last cross-attention gives ${percent(weights[most], 1)} of its weight ` +
        `to the ${source[most].name} of mai. Pick other digits: the year is read from the year, the day from the day. ` +
        "Does the answer need this head? Below, in Break the head, you bet on one.";
    },
  },
  {
    title: "No look ahead",
    target: "head-view",
    state: { token: FIVE, head: "decoder.blocks.1.attention:0" },
    text: ({ record, count, row }) => {
      const weights = record?.attention("decoder.blocks.1.attention").weights[0];
      let later = 0;
      for (let t = 0; t < count; t++) weights?.row(t).forEach((w, s) => (later += s > t ? w : 0));
      return `What is written also looks back at itself. Above the diagonal the map is empty: all weights on later tokens sum to ${later}, ` +
        `for the causal mask has set their scores to −∞. In row ${row + 1}, ${row + 1} tokens may be looked at.`;
    },
  },
  {
    title: "Where a weight comes from",
    target: "path-view",
    state: { token: FIVE, stage: CROSS },
    text: ({ record, source, row }) => {
      const kept = record?.attention(CROSS);
      if (!kept) return "";
      const weights = kept.weights[2].row(row);
      const most = weights.indexOf(Math.max(...weights));
      return `Query times the key of ${source[most].name}: ${fixed(kept.scores[2].row(row)[most], 2)}. Times 1/√16: ` +
        `${fixed(kept.scaled[2].row(row)[most], 2)}. After softmax: ${fixed(weights[most], 4)}. Each step stands below, beside the line of Python that computes it.`;
    },
  },
  {
    title: "The vector grows",
    target: "path-view",
    state: { token: FIVE, stage: "decoder.blocks.1.feed_forward" },
    text: ({ record, row }) => {
      const name = "decoder.blocks.1.feed_forward";
      const hidden = record?.matrix(`${name}.hidden`).row(row) ?? new Float32Array();
      const before = record?.matrix(sumAfter(CROSS)).row(row) ?? [];
      const after = record?.matrix(sumAfter(name)).row(row) ?? [];
      return `The feed-forward network makes ${hidden.length} numbers of 64, of which ${hidden.filter((x) => x > 0).length} are above 0, and adds its result. ` +
        `The vector had length ${fixed(norm(before), 1)} before and has ${fixed(norm(after), 1)} after.`;
    },
  },
  {
    title: "Is the head needed?",
    target: "breaks",
    state: { token: FIVE, off: [`${CROSS}:2`] },
    text: ({ shown, whole, row }) =>
      `Now this head is off. The model writes ${shown.text}, ${shown.text === whole.text ? "as before" : `instead of ${whole.text}`}; ` +
      `the probability of its token ${row + 1} ${moved(exact(whole.chosen[row]), exact(shown.chosen[row]))}. ` +
      "A map shows where a head looks. What the answer depends on, only such a switch can show.",
  },
  {
    title: "Without positions",
    target: "breaks",
    state: { token: FIVE, positions: 0 },
    text: ({ shown, whole }) => {
      const right = shown.tokens.filter((token, t) => token.id === whole.tokens[t]?.id).length;
      return `All heads are on again, and no position is added. The model writes ${shown.text}: ${right} of ${whole.tokens.length} tokens are right. ` +
        "Attention alone does not know in which order characters stand.";
    },
  },
  {
    title: "A question",
    target: "breaks",
    state: { token: FIVE, model: WITHOUT_MASK },
    text: async ({ shown, whole, forced }, attempt) => {
      const { shown: off } = await attempt({ causal: false, model: TRAINED });
      const right = (forced ?? []).filter((token, t) => token.id === whole.tokens[t]?.id).length;
      return `This second model was trained without the causal mask. With the whole answer before its eyes, as in its training, it gets ` +
        `${right} of ${whole.tokens.length} tokens right. Alone it writes ${shown.text || "nothing but the end token"}. Switch the mask off in the first model instead, and that one writes ${off.text}. ` +
        "Neither has a mask now. Why does only one of them fail?";
    },
  },
];

/**
 * Say how a number changed, also where it looks the same once rounded.
 * @param {string} before
 * @param {string} after
 */
function moved(before, after) {
  return before === after ? `is ${after}, as it was` : `went from ${before} to ${after}`;
}

/**
 * Make the tour's bar.
 * @param {{go: (stop: number) => void, leave: () => void}} given `go` from 1, and 0 ends the
 *   tour; `leave` puts the focus where the tour began
 */
export function tour({ go, leave }) {
  let at = 0;
  const end = () => {
    go(0);
    leave();
  };
  const back = h("button", { type: "button", class: "live-button", text: "Back", onclick: () => go(at - 1) });
  const next = h("button", { type: "button", class: "live-button tour-next", text: "Next", onclick: () => (at === STOPS.length ? end() : go(at + 1)) });
  const close = arrow("✕", "End the tour", end);
  const count = h("span", { class: "tour-count" });
  const title = h("strong");
  const text = h("p", { class: "tour-text" });
  const element = h("aside", { class: "tour", "aria-label": "Tour", hidden: true },
    h("div", { class: "tour-said", role: "status" }, h("p", { class: "tour-title" }, count, title), text),
    h("div", { class: "tour-moves" }, back, next, close));
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
  });
  return {
    element,
    next,
    /**
     * @param {View} view
     * @param {(patch: Partial<State>) => Promise<View>} attempt
     */
    async update(view, attempt) {
      at = view.state.tour;
      const stop = STOPS[at - 1];
      set(element, { hidden: !stop });
      if (!stop) return;
      const said = await stop.text(view, attempt);
      if (at !== view.state.tour) return;
      count.textContent = `${at} of ${STOPS.length}`;
      title.textContent = stop.title;
      if (text.textContent !== said) text.textContent = said;
      set(back, { disabled: at === 1 });
      next.textContent = at === STOPS.length ? "Done" : "Next";
    },
  };
}

/**
 * What is usual at a stop of the tour, or without one.
 * @param {number} at from 1; 0 for no tour
 * @returns {State}
 */
export function stateAt(at) {
  const stop = STOPS[at - 1];
  return { ...START, off: [], ...stop?.state, tour: stop ? at : 0 };
}
