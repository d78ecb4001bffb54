// <live-tiles>: the online softmax, tile by tile. It begins with the chapter's four scores,
// and the sums can be left as they were when a larger score comes: the chapter's mistake.

import { NOTHING_READ, readTile, softmaxMean } from "../formulas/online-softmax.js";
import { superscript } from "../ui/chart.js";
import { button, choice, slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { drawing } from "./tiles/drawing.js";

/** @typedef {import("../formulas/online-softmax.js").Kept} Kept */

const SCORES = [1, 0, 3, 2];
const VALUES = [10, 20, 30, 40];
const REACH = 8; // of the scores that can be set, to both sides of 0

class LiveTiles extends LivePiece {
  static style = new URL("tiles.css", import.meta.url);

  scores = [...SCORES];
  size = 2;
  read = 1; // tiles
  rescales = true;
  sentence = h("p", { class: "live-sentence" });
  result = h("p", { class: "live-sentence tiles-result" });
  table = numbers({ caption: "What is kept after each tile" });

  build() {
    const on = () => this.#changed();
    this.back = button("Back", () => this.#step(-1));
    this.next = button("Next tile", () => this.#step(1));
    const sizes = choice({
      label: "keys of a tile", value: "2",
      options: ["1", "2", "4"].map((value) => ({ value, label: value })),
      on: (value) => {
        this.size = Number(value);
        this.read = Math.min(this.read, this.#tiles());
        on();
      },
    });
    const rescales = toggle({ label: "shrink the earlier sums", value: true,
      on: (value) => {
        this.rescales = value;
        on();
      } });
    const sliders = this.scores.map((score, i) => slider({
      label: `score of key ${i + 1}`, min: -REACH, max: REACH, value: score,
      format: (value) => fixed(value, 0),
      on: (value) => {
        this.scores[i] = value;
        on();
      },
    }));
    this.drawing = drawing(() => this.update());
    return [
      hint(h("b", {}, "Read the next tile"), ": a larger score comes, and all that was summed " +
        "shrinks. Which scores hide that somebody forgets it?"),
      h("div", { class: "live-row" }, this.back, this.next, sizes.element, rescales.element),
      this.drawing.element,
      h("p", { class: "live-note" }, "Bars: e", h("sup", { text: "s − m" }), ", as it stands in " +
        "the sum ℓ. m: the largest score so far. o: the same sum with each value."),
      this.sentence, this.result,
      h("div", { class: "live-sliders" }, ...sliders.map(({ element }) => element)),
      this.table.element,
    ];
  }

  /** How many tiles there are. */
  #tiles() {
    return SCORES.length / this.size;
  }

  /** @param {number} by */
  #step(by) {
    this.read = Math.min(this.#tiles(), Math.max(0, this.read + by));
    this.#changed();
  }

  #changed() {
    this.update();
    this.say(`${this.sentence.textContent} ${this.result.textContent}`);
  }

  /** What is kept before the first tile, and after each. */
  #kept() {
    const kept = [NOTHING_READ];
    for (let from = 0; from < SCORES.length; from += this.size) {
      const to = from + this.size;
      kept.push(readTile(kept[kept.length - 1], this.scores.slice(from, to),
        VALUES.slice(from, to), this.rescales));
    }
    return kept;
  }

  update() {
    const kept = this.#kept();
    const { read, size } = this;
    if (this.back) this.back.disabled = read === 0;
    if (this.next) this.next.disabled = read === this.#tiles();
    this.drawing?.update(this.scores.map((score, i) => {
      const tile = Math.floor(i / size) + 1;
      // A key's own share of ℓ: what it was when it was read, and every shrinking since.
      const since = kept.slice(tile + 1, read + 1).reduce((all, { shrink }) => all * shrink, 1);
      return { score, value: VALUES[i], now: tile === read,
        power: tile > read ? null : since * Math.exp(score - kept[tile].m) };
    }), size);
    this.#tell(kept);
    this.table.update({
      columns: ["tiles read", "m", "shrink", "ℓ", "o", "o / ℓ"],
      rows: kept.slice(0, read + 1).map(({ m, shrink, l, o }, tile) => [tile, fixed(m, 0),
        tile > 1 ? fixed(shrink, 4) : "", fixed(l, 4), fixed(o, 4), tile ? fixed(o / l, 6) : ""]),
    });
  }

  /** @param {Kept[]} kept */
  #tell(kept) {
    const { read } = this;
    const { m, l, o, shrink } = kept[read];
    this.sentence.textContent = read === 0 ? "No tile is read: m = −∞, ℓ = 0, o = 0."
      : `Tile ${read}: m = ${fixed(m, 0)}, ℓ = ${fixed(l, 4)}, o = ${fixed(o, 4)}. ` +
        this.#shrinking(read, kept[read - 1].m, m, shrink);
    const wanted = softmaxMean(this.scores, VALUES);
    this.result.textContent = read < this.#tiles()
      ? `All at once it would be ${fixed(wanted, 6)}.`
      : `Tile by tile: o / ℓ = ${fixed(o / l, 6)}. All at once: ${fixed(wanted, 6)}. ` +
        (Math.abs(o / l - wanted) < 1e-9 ? "The same." : "Wrong: the sums are of two maxima.");
  }

  /**
   * @param {number} read
   * @param {number} before the largest score before the tile
   * @param {number} m
   * @param {number} shrink
   */
  #shrinking(read, before, m, shrink) {
    if (read === 1) return "Nothing was summed before.";
    if (m === before) return "The largest score stays, and so do the earlier sums.";
    return this.rescales
      ? `The earlier sums were multiplied by e${superscript(before - m)} = ${fixed(shrink, 4)}.`
      : `The earlier sums are still of m = ${fixed(before, 0)}.`;
  }
}

customElements.define("live-tiles", LiveTiles);
