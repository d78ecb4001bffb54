// <live-state>: tokens write into a matrix, once by adding and once by the delta rule, and
// both are asked with every key. It begins before the third token of the chapter.

import { added, answer, corrected, emptyState } from "../formulas/state.js";
import { button, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";

/** @typedef {import("../formulas/state.js").State} State */
/** @typedef {import("../formulas/state.js").Written & {angle: number}} Token */

const WIDTH = 2; // of keys and values
const STEP = 15; // degrees between two keys that can be chosen
const MOST = 8; // tokens
const STRONGEST = 12; // the number with the strongest colour
const WAYS = [{ name: "adding", write: added }, { name: "delta rule", write: corrected }];

/**
 * @param {number} angle in degrees
 * @param {number[]} value
 * @param {number} [alpha]
 * @param {number} [beta]
 * @returns {Token}
 */
function token(angle, value, alpha = 1, beta = 1) {
  const turned = (angle * Math.PI) / 180;
  return { angle, key: [Math.cos(turned), Math.sin(turned)], value, alpha, beta };
}

class LiveState extends LivePiece {
  static style = new URL("state.css", import.meta.url);

  tokens = begin();
  sentence = h("p", { class: "live-sentence" });
  states = WAYS.map(({ name }) => matrix(name));
  table = numbers({ caption: "Each state is asked with the key of each token",
    summary: "What the states answer" });

  build() {
    const number = (/** @type {number} */ value) => fixed(value, 0);
    const share = (/** @type {number} */ value) => fixed(value / 20, 2);
    const on = () => this.update();
    this.angle = slider({ label: "angle of the key", min: 0, max: 180 / STEP, value: 0, on,
      format: (place) => `${place * STEP}°` });
    this.first = slider({ label: "value, first", min: -9, max: 9, value: 7, format: number, on });
    this.second = slider({ label: "value, second", min: -9, max: 9, value: 8, on,
      format: number });
    this.beta = slider({ label: "corrected, β", min: 0, max: 20, value: 20, format: share, on });
    this.alpha = slider({ label: "kept, α", min: 1, max: 20, value: 20, format: share, on });
    this.write = button("Write", () => this.#change([...this.tokens, this.#next()]));
    this.undo = button("Take back", () => this.#change(this.tokens.slice(0, -1)));
    this.table.element.open = true;
    return [
      hint(h("b", {}, "Write the third token"), ": its key is that of the first, its value is " +
        "new. Which state forgets the old value? Then try a key between two others."),
      h("div", { class: "live-sliders" },
        ...[this.angle, this.first, this.second, this.beta, this.alpha]
          .map(({ element }) => element)),
      h("div", { class: "live-row state-buttons" }, this.write, this.undo,
        button("Start again", () => this.#change(begin()))),
      h("div", { class: "live-parts state-parts" },
        ...this.states.map(({ element }) => element)),
      this.sentence, this.table.element,
    ];
  }

  /** The token that is written next. */
  #next() {
    const at = (/** @type {import("../ui/controls.js").Slider | undefined} */ from) =>
      from?.value ?? 0;
    return token(at(this.angle) * STEP, [at(this.first), at(this.second)],
      at(this.alpha) / 20, at(this.beta) / 20);
  }

  /** @param {Token[]} tokens */
  #change(tokens) {
    this.tokens = tokens;
    this.update();
    this.say(this.sentence.textContent);
  }

  update() {
    const { tokens } = this;
    const states = WAYS.map(({ write }) =>
      tokens.reduce((state, each) => write(state, each), emptyState(WIDTH, WIDTH)));
    if (this.write) this.write.disabled = tokens.length === MOST;
    if (this.undo) this.undo.disabled = !tokens.length;
    states.forEach((state, i) => this.states[i].update(state));
    this.#tell(states);
    this.table.update({
      columns: ["token", "key", "value", ...WAYS.map(({ name }) => name)],
      rows: tokens.map(({ key, value, angle }, i) => [
        tokens.slice(i + 1).some((later) => later.angle === angle) ? `${i + 1}, old` : i + 1,
        `${angle}°`, vector(value, 0), ...states.map((state) => vector(answer(state, key))),
      ]),
    });
  }

  /** @param {State[]} states */
  #tell(states) {
    const last = this.tokens[this.tokens.length - 1];
    if (!last) {
      this.sentence.textContent = "Nothing is written: both states are 0.";
      return;
    }
    const [sum, delta] = states.map((state) => vector(answer(state, last.key)));
    this.sentence.textContent = `Token ${this.tokens.length} wrote ${vector(last.value, 0)} under ` +
      `the key ${vector(last.key)}. Asked with it, the state that adds answers ${sum}, that of ` +
      `the delta rule ${delta}.`;
  }
}

/** The chapter's first two tokens. */
function begin() {
  return [token(0, [3, 4]), token(90, [5, 6])];
}

/**
 * @param {number[]} numbers
 * @param {number} [digits]
 */
function vector(numbers, digits = 2) {
  return `(${numbers.map((x) => fixed(x, digits)).join(", ")})`;
}

/**
 * A state as a table of coloured numbers.
 * @param {string} name
 */
function matrix(name) {
  const cells = Array.from({ length: WIDTH * WIDTH }, () => h("td"));
  const rows = Array.from({ length: WIDTH }, (_, i) =>
    h("tr", {}, ...cells.slice(i * WIDTH, (i + 1) * WIDTH)));
  return {
    element: h("table", { class: "state-matrix" },
      h("caption", { class: "live-title", text: `S, ${name}` }), h("tbody", {}, ...rows)),
    /** @param {State} state */
    update(state) {
      state.flat().forEach((value, i) => {
        cells[i].textContent = fixed(value);
        cells[i].classList.toggle("negative", value < 0);
        cells[i].style.setProperty("--part", `${Math.min(Math.abs(value) / STRONGEST, 1) * 45}%`);
      });
    },
  };
}

customElements.define("live-state", LiveState);
