// <live-attention>: one query and three keys in a plane, dragged; scores, softmax, mean.
// It starts with the smallest case of the chapter on attention.

import { button, slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { percent } from "../ui/format.js";
import { LivePiece, hint } from "../ui/piece.js";
import { plane } from "./attention/plane.js";
import { steps } from "./attention/steps.js";

/** @typedef {import("../ui/handle.js").Point} Point */
/** @typedef {{word: string, colour: string, at: Point, value: number[]}} Key */
/**
 * @typedef {{scores: number[], scaled: number[], powers: number[], weights: number[],
 *   output: number[]}} Result
 */

export const WIDTH = 4; // d_k of the example: the plane shows two of the four places
const TEMPERATURES = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10];

/** @returns {{query: Point, keys: Key[]}} */
function smallestCase() {
  return {
    query: { x: 2, y: 2 },
    keys: [
      { word: "cat", colour: "blue", at: { x: 1, y: 1 }, value: [10, 0, 0, 0] },
      { word: "sat", colour: "orange", at: { x: 1, y: 0 }, value: [0, 10, 0, 0] },
      { word: "because", colour: "green", at: { x: 0, y: 0 }, value: [0, 0, 10, 0] },
    ],
  };
}

/**
 * softmax(query · keys / divisor) · values, with each step on the way.
 * @param {Point} query
 * @param {Key[]} keys
 * @param {number} divisor √d_k times the temperature
 * @returns {Result}
 */
export function attend(query, keys, divisor) {
  const scores = keys.map(({ at }) => query.x * at.x + query.y * at.y);
  const scaled = scores.map((score) => score / divisor);
  const most = Math.max(...scaled);
  const shifted = scaled.map((score) => Math.exp(score - most)); // none overflows
  const sum = shifted.reduce((a, b) => a + b);
  const weights = shifted.map((power) => power / sum);
  const output = keys[0].value.map((_, place) =>
    weights.reduce((total, weight, i) => total + weight * keys[i].value[place], 0));
  return { scores, scaled, powers: scaled.map(Math.exp), weights, output };
}

class LiveAttention extends LivePiece {
  static style = new URL("attention.css", import.meta.url);

  example = smallestCase();
  temperature = 1;
  divide = true;

  build() {
    const moved = () => {
      this.update();
      this.tell();
    };
    this.plane = plane(this.example, moved);
    this.steps = steps(this.example.keys);
    this.switch = toggle({
      label: "divide by √d_k = √4", value: true,
      on: (on) => {
        this.divide = on;
        moved();
      },
    });
    this.slider = slider({
      label: "temperature", min: 0, max: TEMPERATURES.length - 1, value: 5,
      format: (i) => String(TEMPERATURES[i]),
      on: (i) => {
        this.temperature = TEMPERATURES[i];
        moved();
      },
    });
    const again = button("Start again", () => {
      Object.assign(this.example.query, smallestCase().query);
      smallestCase().keys.forEach(({ at }, i) => Object.assign(this.example.keys[i].at, at));
      this.temperature = 1;
      this.divide = true;
      if (this.slider) this.slider.value = 5;
      if (this.switch) this.switch.value = true;
      moved();
    });
    return [
      hint(h("b", {}, "Drag the query, ", h("i", {}, "it"), ", or a key"),
        " (or Tab to it and press the arrow keys). Who gets the most weight when the " +
        "query grows? When it turns around?"),
      h("div", { class: "live-parts attention-parts" }, this.plane.element,
        h("div", { class: "attention-side" }, this.steps.element,
          h("div", { class: "live-row" }, this.slider.element),
          h("div", { class: "live-row" }, this.switch.element, again))),
      h("p", { class: "live-note" },
        "The plane shows two of the four places, living and noun. In the other two the " +
        "query is 0, so they add nothing. From one thin line to the next the divided " +
        "score grows by 1, and the weight by the factor e. The temperature divides the " +
        "scores once more."),
    ];
  }

  update() {
    const { query, keys } = this.example;
    const root = this.divide ? Math.sqrt(WIDTH) : 1;
    const result = attend(query, keys, root * this.temperature);
    const by = [this.divide ? "√4" : "", this.temperature === 1 ? "" : this.temperature];
    this.plane?.update(result.weights, root * this.temperature);
    this.steps?.update(result, by.filter(Boolean).join(" · ") || "1");
  }

  tell() {
    const { query, keys } = this.example;
    const root = this.divide ? Math.sqrt(WIDTH) : 1;
    const { weights } = attend(query, keys, root * this.temperature);
    this.say(`Weights: ${keys.map(({ word }, i) =>
      `${word} ${percent(weights[i])}`).join(", ")}.`);
  }
}

customElements.define("live-attention", LiveAttention);
