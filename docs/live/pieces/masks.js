// <live-masks>: a mask whose cells are toggled, and who reads whom through two layers.
// It has the four masks of the chapter's figure.

import { attentionWeights } from "../engine/attention.js";
import { Matrix } from "../engine/linear.js";
import { causalMask, combineMasks, keyMask } from "../engine/masks.js";
import { sees } from "../formulas/window.js";
import { choice } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { LivePiece, hint } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { grid } from "./masks/grid.js";
import { layers } from "./masks/layers.js";

/** @typedef {import("../engine/masks.js").Mask} Mask */

const TOKENS = 8;
const REAL = 6; // the last two tokens are padding
const WINDOW = 3;

/** The newest `width` keys of each query. @param {number} width @returns {Mask} */
function slidingWindow(width) {
  return causalMask(TOKENS).map((row, i) => row.map((_, j) => sees(i, j, width)));
}

/** @returns {Mask} */
function padding() {
  return keyMask(Array.from({ length: TOKENS }, (_, j) => j < REAL), TOKENS);
}

const PRESETS = /** @type {Record<string, () => Mask>} */ ({
  causal: () => causalMask(TOKENS),
  window: () => slidingWindow(WINDOW),
  padding,
  both: () => combineMasks(slidingWindow(WINDOW), padding()) ?? [],
});

/**
 * Who reads whom through two layers: the product of the mask with itself, in which only
 * zero or not zero counts.
 * @param {Mask} mask
 * @returns {Mask}
 */
export function throughTwo(mask) {
  return mask.map((row, i) => row.map((_, j) => between(mask, i, j).length > 0));
}

/**
 * The tokens by which key j reaches query i: i may look at them, and they at j.
 * @param {Mask} mask
 * @param {number} i
 * @param {number} j
 */
export function between(mask, i, j) {
  const found = mask.map((_, k) => k).filter((k) => mask[i][k] && mask[k][j]);
  /** @param {number} k */
  const stays = (k) => Number(k === i || k === j); // a detour is shown first
  return found.sort((a, b) => stays(a) - stays(b) || a - b);
}

/**
 * The weights of each query if all scores are equal.
 * @param {Mask} mask
 */
function equalWeights(mask) {
  const none = new Matrix(mask.length, 1); // queries and keys of 0
  return attentionWeights(none, none, mask).weights;
}

class LiveMasks extends LivePiece {
  static style = new URL("masks.css", import.meta.url);

  mask = PRESETS.window();
  query = 7;
  key = 3;
  sentence = h("p", { class: "masks-path" });
  counts = h("p", { class: "masks-counts number" });
  table = numbers({ caption: "What each query reads" });

  build() {
    this.presets = choice({
      label: "Begin with", value: "window",
      options: [
        { value: "causal", label: "causal" },
        { value: "window", label: "window of 3" },
        { value: "padding", label: "padding" },
        { value: "both", label: "window and padding" },
      ],
      on: (name) => {
        this.mask = PRESETS[name]();
        this.change();
      },
    });
    this.grid = grid({
      size: TOKENS,
      toggle: (i, j) => {
        this.mask[i][j] = !this.mask[i][j];
        if (this.presets) this.presets.value = "";
        this.select(i, j);
      },
      select: (i, j) => this.select(i, j),
    });
    this.layers = layers({ size: TOKENS, select: (i, j) => this.select(i ?? this.query, j ?? this.key) });
    return [
      hint(h("b", {}, "Click cells of the mask"), " (or move with the arrow keys, and " +
        "press Space). Can you cut query 7 off from token 3 by hiding a single cell?"),
      this.presets.element,
      h("div", { class: "live-parts masks-parts" },
        h("div", {}, this.grid.element, h("p", { class: "masks-legend" },
          "A row is a query, a column a key. Blue: may look. 2: reads it through two " +
          "layers only. Weights: of each key, if all scores are equal.")),
        h("div", {}, this.layers.element, this.sentence)),
      this.counts, this.table.element,
    ];
  }

  /**
   * @param {number} query
   * @param {number} key
   */
  select(query, key) {
    Object.assign(this, { query, key });
    this.change();
  }

  change() {
    this.update();
    const state = this.mask[this.query][this.key] ? "may attend" : "hidden";
    this.say(`Query ${this.query}, key ${this.key}: ${state}. ${this.sentence.textContent}`);
  }

  update() {
    const { mask, query, key } = this;
    const two = throughTwo(mask);
    const weights = equalWeights(mask);
    const path = between(mask, query, key);
    this.grid?.update({ mask, two, weights, query, key });
    this.layers?.update({ mask, query, key, path });
    this.sentence.textContent = told(mask, query, key, path);
    const [one, both] = [mask, two].map((each) => each.flat().filter(Boolean).length);
    const pairs = TOKENS * TOKENS;
    this.counts.textContent =
      `One layer: ${one} of ${pairs} pairs. Two layers: ${both} of ${pairs} pairs.`;
    this.table.update({
      columns: ["query", "may look at", "reads through two layers"],
      rows: mask.map((row, i) => [i, listed(row), listed(two[i])]),
    });
  }
}

/** @param {boolean[]} row */
function listed(row) {
  return row.flatMap((may, j) => (may ? [j] : [])).join(", ") || "nothing";
}

/**
 * Say whether and how token `key` reaches `query`.
 * @param {Mask} mask
 * @param {number} query
 * @param {number} key
 * @param {number[]} path the tokens between them
 */
function told(mask, query, key, path) {
  if (!mask[query].some(Boolean)) {
    return `Query ${query} may look at nothing: its weights and its output are 0.`;
  }
  const direct = mask[query][key];
  if (!path.length) {
    const how = direct ? "reaches query" : "does not reach query";
    return `Token ${key} ${how} ${query}${direct ? " in one layer, but not in two" : ", not even in two layers"}.`;
  }
  const [by, ...others] = path;
  const more = others.length ? `, and by ${others.join(", ")}` : "";
  const layers = direct ? "in one layer, and in two" : "in two layers";
  return `Token ${key} reaches query ${query} ${layers}: ${key} → ${by} → ${query}${more}.`;
}

customElements.define("live-masks", LiveMasks);
