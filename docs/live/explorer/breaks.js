// What the reader can break: switched off in the trained model, or trained without.

import { button, choice, slider, toggle } from "../ui/controls.js";
import { h, set } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { spoken } from "./maps.js";
import { RANGES, START, TRAINED, WITHOUT_MASK, headNames } from "./state.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Sizes} Sizes */

const UNBROKEN = /** @type {Partial<State>} */ ({
  off: [], scale: 1, positions: 1, causal: true, temperature: 0, topK: 0, seed: 0,
  model: TRAINED,
});

/**
 * Make the controls.
 * @param {{sizes: Sizes, headDim: number, change: (patch: Partial<State>) => void}} given
 */
export function breaks({ sizes, headDim, change }) {
  const root = Math.sqrt(headDim);
  const model = choice({
    label: "The weights",
    options: [
      { value: TRAINED, label: "trained as in the book" },
      { value: WITHOUT_MASK, label: "trained without the mask" },
    ],
    value: TRAINED,
    on: (value) => change({ model: value }),
  });
  const scale = range("scale", "Scale", (x) =>
    x === 1 ? `1/√d_k` : x === root ? `× ${x}: no 1/√d_k` : `1/√d_k × ${x}`);
  const positions = range("positions", "Positional encoding", (x) =>
    x === 0 ? "× 0: none" : `× ${fixed(x, 1)}`);
  const temperature = range("temperature", "Temperature", (x) =>
    x === 0 ? "0: the likeliest" : fixed(x, 1));
  const topK = range("topK", "Top-k", (x) => (x === 0 ? "all" : `${x} likeliest`));
  const causal = toggle({
    label: "Causal mask", value: true, on: (value) => change({ causal: value }),
  });
  const again = button("Draw again", () => change({ seed: (seed + 1) % 10000 }));
  const reset = button("Undo all", () => change({ ...UNBROKEN }));
  const heads = h("p", { class: "breaks-heads" });
  let seed = 0;

  /**
   * @param {"scale" | "positions" | "temperature" | "topK"} name
   * @param {string} label
   * @param {(x: number) => string} format
   */
  function range(name, label, format) {
    const [min, max, step] = RANGES[name];
    return slider({
      label, min, max, step, format, value: START[name], on: (value) => change({ [name]: value }),
    });
  }

  const lastCross = headNames(sizes).filter((name) =>
    name.startsWith(`decoder.blocks.${sizes.decoderLayers - 1}.cross_attention`));
  /** @type {[string, Partial<State>][]} */
  const trials = [
    ["one head off", { off: [START.head] }],
    ["all cross heads of the last layer off", { off: lastCross }],
    ["no 1/√d_k", { scale: root }],
    ["no positions", { positions: 0 }],
    ["mask off", { causal: false }],
    ["trained without the mask", { model: WITHOUT_MASK }],
  ];
  const element = h("section", { class: "breaks" },
    h("div", { class: "breaks-top" }, h("h2", { class: "live-title", text: "Break it" }), reset),
    h("div", { class: "breaks-trials", role: "group", "aria-label": "Experiments" },
      ...trials.map(([name, patch]) => h("button", {
        type: "button", class: "entry-chip", text: name,
        onclick: () => change({ ...UNBROKEN, ...patch }),
      }))),
    h("fieldset", { class: "breaks-now" },
      h("legend", { text: "Switched off now, in the trained model" }),
      h("div", { class: "breaks-controls" }, scale.element, positions.element, causal.element), heads),
    h("fieldset", { class: "breaks-now" },
      h("legend", { text: "Trained without: another model" }), model.element));
  const choosing = h("fieldset", { class: "breaks-now" },
    h("legend", { text: "How a token is chosen" }),
    h("div", { class: "breaks-controls" }, temperature.element, topK.element, again));

  return {
    element,
    choosing,
    /** @param {View} view */
    update({ state, broken }) {
      seed = state.seed;
      for (const [control, value] of /** @type {const} */ ([
        [scale, state.scale], [positions, state.positions],
        [temperature, state.temperature], [topK, state.topK],
      ])) if (control.value !== value) control.value = value;
      causal.value = state.causal && state.model === TRAINED;
      causal.input.disabled = state.model !== TRAINED;
      model.value = state.model === TRAINED ? TRAINED : WITHOUT_MASK;
      set(reset, { disabled: !broken });
      for (const control of [again, topK.input]) set(control, { disabled: state.temperature === 0 });
      const off = state.off.map(spoken);
      heads.textContent = off.length === 0
        ? "Heads: all on. Pick one among the maps, and switch it off there."
        : off.length > 2 ? `Heads: ${off.length} are off.` : `Off: ${off.join("; ")}.`;
    },
  };
}
