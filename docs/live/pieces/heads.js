// <live-heads>: how (T, D) becomes (H, T, Dh) and comes back, with and without the two
// transposes. It starts with the twelve numbers of the chapter.

import { choice, slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { LivePiece, hint } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { drawing } from "./heads/drawing.js";

/** @typedef {"tokens" | "heads" | "back"} Step */

const T = 3; // tokens
const WIDTHS = ["4", "8", "12"]; // D

/**
 * Cut the width into heads: place `to` of the result holds entry `from[to]` of (T, D).
 * @param {number} width D
 * @param {number} heads H
 * @param {boolean} transpose whether the axis of heads is moved to the front, or the
 *   numbers are only read in another shape
 * @returns {number[]} of (H, T, Dh), row by row
 */
export function split(width, heads, transpose) {
  const Dh = width / heads;
  return places(heads, T, Dh).map(([head, t, i]) => transpose
    ? t * width + head * Dh + i
    : (head * T + t) * Dh + i);
}

/**
 * Put heads side by side again.
 * @param {number[]} given (H, T, Dh), row by row
 * @param {number} width D
 * @param {number} heads H
 * @param {boolean} transpose
 * @returns {number[]} (T, D), row by row
 */
export function merge(given, width, heads, transpose) {
  if (!transpose) return [...given];
  const Dh = width / heads;
  return places(T, heads, Dh).map(([t, head, i]) => given[(head * T + t) * Dh + i]);
}

/**
 * Every place of an array of three axes, in the order of memory.
 * @param {number} a
 * @param {number} b
 * @param {number} c
 * @returns {[number, number, number][]}
 */
function places(a, b, c) {
  return Array.from({ length: a * b * c }, (_, n) =>
    [Math.floor(n / (b * c)), Math.floor(n / c) % b, n % c]);
}

/** The numbers that divide a width. @param {number} width */
function divisors(width) {
  return Array.from({ length: width }, (_, i) => i + 1).filter((n) => width % n === 0);
}

class LiveHeads extends LivePiece {
  static style = new URL("heads.css", import.meta.url);

  width = 4;
  heads = 2;
  step = /** @type {Step} */ ("heads");
  splitTransposes = true;
  mergeTransposes = true;
  picture = drawing();
  shape = h("p", { class: "heads-shape number" });
  verdict = h("p", { class: "heads-verdict" });
  table = numbers({ caption: "Where each number is" });

  build() {
    const change = () => {
      this.update();
      this.say(this.verdict.textContent ?? "");
    };
    /** @param {number} width */
    const format = (width) => {
      const heads = divisors(this.width)[width];
      return `${heads} of width ${this.width / heads}`;
    };
    const count = slider({
      label: "heads, H", min: 0, max: divisors(this.width).length - 1, value: 1, format,
      on: (i) => {
        this.heads = divisors(this.width)[i];
        change();
      },
    });
    const width = choice({
      label: "width of a token, D", value: "4",
      options: WIDTHS.map((value) => ({ value, label: value })),
      on: (value) => {
        this.width = Number(value);
        const all = divisors(this.width);
        if (!all.includes(this.heads)) this.heads = 2;
        count.limit(0, all.length - 1);
        count.value = all.indexOf(this.heads);
        change();
      },
    });
    const steps = choice({
      label: "Step", value: this.step,
      options: [
        { value: /** @type {Step} */ ("tokens"), label: "1 tokens" },
        { value: /** @type {Step} */ ("heads"), label: "2 heads" },
        { value: /** @type {Step} */ ("back"), label: "3 back again" },
      ],
      on: (step) => {
        this.step = step;
        change();
      },
    });
    const ways = /** @type {const} */ ([
      ["splitTransposes", "transpose when splitting"],
      ["mergeTransposes", "transpose back when merging"],
    ]).map(([name, label]) => toggle({
      label, value: true,
      on: (on) => {
        this[name] = on;
        change();
      },
    }).element);
    return [
      hint(h("b", {}, "Step through 1, 2, 3"), ", then switch a transpose off. The shape " +
        "stays the same. Which token does a row of head 1 hold now?"),
      steps.element,
      this.shape, this.picture.element,
      this.verdict,
      h("div", { class: "live-row heads-settings" }, width.element, count.element),
      h("div", { class: "live-row heads-settings" }, ...ways),
      this.table.element,
    ];
  }

  update() {
    const { width, heads, step } = this;
    const inHeads = split(width, heads, this.splitTransposes);
    const back = merge(inHeads, width, heads, this.mergeTransposes);
    const order = step === "tokens" ? back.map((_, i) => i) : step === "heads" ? inHeads : back;
    const Dh = width / heads;
    this.picture.update({
      order, tokens: T, width, heads, split: step === "heads", still: this.still,
    });
    this.shape.textContent = step === "heads"
      ? `(H, T, Dh) = (${heads}, ${T}, ${Dh})`
      : `(T, D) = (${T}, ${width})`;
    this.verdict.textContent = this.#told(inHeads, back);
    /** @param {number} row */
    const numbersOf = (row) => step === "heads"
      ? order.slice(row * Dh, (row + 1) * Dh)
      : order.slice(row * width, (row + 1) * width);
    const names = step === "heads"
      ? places(heads, T, 1).map(([head, t]) => `head ${head + 1}, row ${t}`)
      : Array.from({ length: T }, (_, t) => `row ${t}`);
    this.table.update({
      columns: ["", ...Array.from({ length: step === "heads" ? Dh : width }, (_, i) => `${i}`)],
      rows: names.map((name, row) => [name, ...numbersOf(row)]),
    });
  }

  /**
   * @param {number[]} inHeads
   * @param {number[]} back
   */
  #told(inHeads, back) {
    const { width, heads, step } = this;
    if (step === "tokens") {
      return `${T} tokens, a row each. The colour says which head each column belongs to.`;
    }
    if (step === "back") {
      const same = back.every((from, to) => from === to);
      const moved = back.filter((from, to) => from !== to).length;
      return same
        ? "Back again: every number is where it was."
        : `${moved} of ${T * width} numbers are not where they were: rows are no longer tokens.`;
    }
    const Dh = width / heads;
    const rows = Array.from({ length: T }, (_, t) =>
      [...new Set(inHeads.slice(t * Dh, (t + 1) * Dh).map((n) => Math.floor(n / width)))]);
    const said = rows.map((tokens) => tokens.join(" and ")).join(", ");
    const right = rows.every((tokens, t) => tokens.length === 1 && tokens[0] === t);
    const verdict = right ? "one row a token" : "head 1 is a piece of the sentence";
    return `The rows of head 1 belong to tokens ${said}: ${verdict}.`;
  }
}

customElements.define("live-heads", LiveHeads);
