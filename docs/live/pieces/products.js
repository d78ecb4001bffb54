// <live-products>: the dot product of the rows of two positions, clock by clock. It has
// the chapter's table of 200 positions of width 64.

import { button } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { LivePiece, hint } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { speed, tableRow } from "./positions/table.js";
import { bars } from "./products/bars.js";
import { curve } from "./products/curve.js";
import { hands } from "./products/hands.js";
import { line } from "./products/line.js";

const LENGTH = 200; // positions
const WIDTH = 64; // d_model
const CLOCKS = WIDTH / 2;
const SHOWN = [0, 4, 8, 12]; // the clocks that are drawn

/**
 * What each clock adds to the product of two positions.
 * @param {number} p
 * @param {number} q
 */
export function contributions(p, q) {
  const [a, b] = [tableRow(p, WIDTH), tableRow(q, WIDTH)];
  return Array.from({ length: CLOCKS }, (_, i) =>
    a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
}

/** @param {number[]} values */
const sum = (values) => values.reduce((a, b) => a + b, 0);

class LiveProducts extends LivePiece {
  static style = new URL("products.css", import.meta.url);

  at = { p: 25, q: 20 };
  product = h("b", { class: "number" });
  formula = h("b", { class: "number" });
  equation = h("p", { class: "products-equation" },
    "row p · row q = ", this.product, h("span", { class: "products-same" },
      "the sum of all cos(ω", h("sub", { text: "i" }), "(p − q)) = ", this.formula));
  table = numbers({ caption: "What each clock adds" });

  build() {
    this.line = line({
      last: LENGTH - 1, at: this.at,
      move: (name, to) => this.go({ ...this.at, [name]: to }),
    });
    this.hands = SHOWN.map((i) => hands(`clock ${i}`));
    this.bars = bars({ count: CLOCKS });
    this.curve = curve({
      reach: LENGTH - 1, most: CLOCKS,
      value: (distance) => sum(contributions(distance, 0)),
    });
    /** @param {number} by */
    const both = (by) => () => {
      const { p, q } = this.at;
      const room = by < 0 ? -Math.min(p, q) : LENGTH - 1 - Math.max(p, q);
      const step = by < 0 ? Math.max(by, room) : Math.min(by, room);
      this.go({ p: p + step, q: q + step });
    };
    return [
      hint(h("b", {}, "Drag p and q"), " (or use the arrow keys). Then move both: the " +
        "hands turn, but the angle between them stays, and so does the product."),
      this.line.element,
      h("div", { class: "live-row products-buttons" },
        button("Both 10 to the left", both(-10)), button("Both 10 to the right", both(10)),
        button("Swap p and q", () => this.go({ p: this.at.q, q: this.at.p }))),
      h("div", { class: "products-hands" }, ...this.hands.map(({ element }) => element)),
      h("p", { class: "live-title", text: `What each of the ${CLOCKS} clocks adds` }),
      this.bars.element, this.equation,
      h("p", { class: "live-title" }, "The product by the distance p − q"),
      this.curve.element, this.table.element,
    ];
  }

  /** @param {{p: number, q: number}} at */
  go(at) {
    const inside = (/** @type {number} */ x) => Math.min(LENGTH - 1, Math.max(0, Math.round(x)));
    Object.assign(this.at, { p: inside(at.p), q: inside(at.q) });
    this.update();
    const { p, q } = this.at;
    this.say(`p ${p}, q ${q}, distance ${p - q}: product ${this.product.textContent}.`);
  }

  update() {
    const { p, q } = this.at;
    const added = contributions(p, q);
    this.line?.update();
    this.hands?.forEach((each, place) => {
      const i = SHOWN[place];
      each.update(p * speed(i, WIDTH), q * speed(i, WIDTH), added[i]);
    });
    this.bars?.update(added);
    this.product.textContent = fixed(sum(added), 4);
    const cosines = added.map((_, i) => Math.cos(speed(i, WIDTH) * (p - q)));
    this.formula.textContent = fixed(sum(cosines), 4);
    this.curve?.update(p - q, sum(added));
    this.table.update({
      columns: ["clock", "angle at p", "angle at q", "adds"],
      rows: added.map((x, i) => [i, fixed(p * speed(i, WIDTH)), fixed(q * speed(i, WIDTH)), fixed(x, 4)]),
    });
  }
}

customElements.define("live-products", LiveProducts);
