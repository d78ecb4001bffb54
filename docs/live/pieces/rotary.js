// <live-rotary>: a query and a key that are rotated by their positions. Both move on, and
// the score stays, unless they are rotated in two layouts. The vectors are the chapter's
// ones of width 64, or random.

import { placesOfPair, rotaryFrequencies, rotate } from "../formulas/rotary.js";
import { button, choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { torchNormal } from "../ui/torch-random.js";
import { moving } from "./rotary/moving.js";
import { angleBetween, plane } from "./rotary/plane.js";

/** @typedef {import("../formulas/rotary.js").Layout} Layout */

const WIDTH = 64; // of the head
const LAST = 256; // position
const SHOWN = [0, 8, 16, 24]; // the pairs that are drawn
const BASES = ["10,000", "500,000"];
const LAYOUTS = /** @type {Layout[]} */ (["pairs", "halves"]);

/** The two vectors, before they are rotated. @param {boolean} random */
function vectors(random) {
  const both = random ? torchNormal(0, 2 * WIDTH) : new Float64Array(2 * WIDTH).fill(1);
  return { query: both.slice(0, WIDTH), key: both.slice(WIDTH) };
}

class LiveRotary extends LivePiece {
  static style = new URL("rotary.css", import.meta.url);

  at = { query: 4, key: 3 };
  layouts = { query: /** @type {Layout} */ ("pairs"), key: /** @type {Layout} */ ("pairs") };
  planes = SHOWN.map((pair) => plane(pair));
  sentence = h("p", { class: "live-sentence" });
  table = numbers({ caption: "Each pair" });

  build() {
    const names = /** @type {const} */ (["query", "key"]);
    this.sliders = names.map((name) => slider({
      label: `position of the ${name}`, min: 0, max: LAST, value: this.at[name],
      on: (to) => this.#go({ ...this.at, [name]: to }),
    }));
    const on = () => this.#changed();
    this.base = choice({ label: "base", value: BASES[0], on,
      options: BASES.map((value) => ({ value, label: value })) });
    this.drawn = choice({ label: "query and key", value: "ones", on,
      options: ["ones", "random"].map((value) => ({ value, label: value })) });
    const layouts = names.map((name) => choice({
      label: `layout of the ${name}`, value: this.layouts[name],
      options: LAYOUTS.map((value) => ({ value, label: value })),
      on: (value) => {
        this.layouts[name] = value;
        on();
      },
    }));
    this.chart = moving(() => this.update());
    /** @param {number} by */
    const both = (by) => () => {
      const { query, key } = this.at;
      const room = by < 0 ? -Math.min(query, key) : LAST - Math.max(query, key);
      const step = by < 0 ? Math.max(by, room) : Math.min(by, room);
      this.#go({ query: query + step, key: key + step });
    };
    return [
      hint(h("b", {}, "Move both tokens on"), ": the arrows turn, and the angle between them " +
        "stays. Then rotate the key in the other layout."),
      h("div", { class: "live-sliders" }, ...this.sliders.map(({ element }) => element)),
      h("div", { class: "live-row rotary-buttons" },
        button("Both 10 back", both(-10)), button("Both 10 on", both(10))),
      h("div", { class: "rotary-planes" }, ...this.planes.map(({ element }) => element)),
      h("p", { class: "live-note" }, h("b", { class: "rotary-name query", text: "Query" }),
        " and ", h("b", { class: "rotary-name key", text: "key" }),
        "; below each pair, θ, by how many radians it turns at each place, and by how many the " +
        "query is ahead of the key."),
      h("div", { class: "live-row rotary-choices" }, this.base.element, this.drawn.element,
        ...layouts.map(({ element }) => element)),
      this.chart.element, this.sentence, this.table.element,
    ];
  }

  /** @param {{query: number, key: number}} at */
  #go(at) {
    this.at = at;
    this.sliders?.forEach((each, i) => (each.value = i ? at.key : at.query));
    this.#changed();
  }

  #changed() {
    this.update();
    this.say(this.sentence.textContent);
  }

  update() {
    const theta = rotaryFrequencies(WIDTH, Number(this.base?.value.replace(",", "")));
    const { query, key } = vectors(this.drawn?.value === "random");
    const turned = (/** @type {number} */ byQuery, /** @type {number} */ byKey) => ({
      query: rotate(query, this.at.query + byQuery, theta, this.layouts.query),
      key: rotate(key, this.at.key + byKey, theta, this.layouts.key),
    });
    const score = (/** @type {number} */ byQuery, /** @type {number} */ byKey) => {
      const both = turned(byQuery, byKey);
      return both.query.reduce((sum, x, i) => sum + x * both.key[i], 0) / WIDTH;
    };
    const now = turned(0, 0);
    const arrows = theta.map((_, i) => ({
      query: arrow(now.query, i, this.layouts.query), key: arrow(now.key, i, this.layouts.key),
    }));
    const longest = Math.max(...SHOWN.flatMap((i) =>
      [arrows[i].query, arrows[i].key].map(({ x, y }) => Math.hypot(x, y))));
    this.planes.forEach((each, place) => {
      const i = SHOWN[place];
      each.update({ ...arrows[i], longest, theta: theta[i] });
    });
    const places = Array.from({ length: LAST + 1 }, (_, by) => by);
    this.chart?.update(places.map((by) => score(by, by)), places.map((by) => score(by, 0)));
    this.#tell(score(0, 0), score(100, 100));
    this.table.update({
      columns: ["pair", "θ", "query turned by", "key turned by", "angle between"],
      rows: theta.map((speed, i) => [i, fixed(speed, 5), fixed(this.at.query * speed, 3),
        fixed(this.at.key * speed, 3), fixed(angleBetween(arrows[i].query, arrows[i].key), 3)]),
    });
  }

  /**
   * @param {number} score
   * @param {number} later of the same tokens, 100 places further on
   */
  #tell(score, later) {
    const same = this.layouts.query === this.layouts.key;
    this.sentence.textContent = `Distance ${fixed(this.at.query - this.at.key, 0)}: the score / ` +
      `64 is ${fixed(score, 4)}, and 100 places further on ${fixed(later, 4)}. ` +
      (same ? "It depends on the distance only."
        : "With two layouts it depends on where the tokens stand: a number of one pair meets a " +
          "number of another.");
  }
}

/**
 * The two numbers of a pair as an arrow.
 * @param {number[]} x
 * @param {number} pair
 * @param {Layout} layout
 */
function arrow(x, pair, layout) {
  const [first, second] = placesOfPair(pair, WIDTH, layout);
  return { x: x[first], y: x[second] };
}

customElements.define("live-rotary", LiveRotary);
