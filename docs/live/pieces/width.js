// <live-width>: scores of random queries and keys as d_k grows, divided by √d_k and not.
// The numbers are the chapter's: 64 queries, 64 keys, torch's own random numbers.

import { slider } from "../ui/controls.js";
import { h, set, svg } from "../ui/dom.js";
import { fixed, grouped, percent } from "../ui/format.js";
import { LivePiece, hint } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { torchNormal } from "../ui/torch-random.js";

const COUNT = 64; // of queries, and of keys
const SHOWN = 10; // of the weights of a row, the largest
const [LEAST, START, MOST] = [2, 6, 10]; // d_k is 2 to the power of these

/**
 * @typedef {{scores: Float64Array, deviation: number, largest: number[]}} Measured
 *   the scores (64 × 64), their standard deviation, and the weights of a row from the
 *   largest on, each the mean over the queries
 */

/**
 * The scores of 64 random queries and keys of some width.
 * @param {number} width
 */
export function randomScores(width) {
  const drawn = torchNormal(0, 2 * COUNT * width);
  const scores = new Float64Array(COUNT * COUNT);
  for (let q = 0; q < COUNT; q += 1) {
    for (let k = 0; k < COUNT; k += 1) {
      const key = (COUNT + k) * width;
      let sum = 0;
      for (let i = 0; i < width; i += 1) sum += drawn[q * width + i] * drawn[key + i];
      scores[q * COUNT + k] = sum;
    }
  }
  return scores;
}

/**
 * @param {Float64Array} raw
 * @param {number} scale
 * @returns {Measured}
 */
export function measure(raw, scale) {
  const scores = raw.map((score) => score * scale);
  const mean = scores.reduce((a, b) => a + b) / scores.length;
  const square = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const largest = new Array(COUNT).fill(0);
  for (let q = 0; q < COUNT; q += 1) {
    const row = scores.slice(q * COUNT, (q + 1) * COUNT).sort().reverse();
    const powers = row.map((score) => Math.exp(score - row[0]));
    const sum = powers.reduce((a, b) => a + b);
    powers.forEach((power, rank) => (largest[rank] += power / sum / COUNT));
  }
  return { scores, deviation: Math.sqrt(square / (scores.length - 1)), largest };
}

class LiveWidth extends LivePiece {
  static style = new URL("width.css", import.meta.url);

  power = START;
  panels = [panel("not divided", 100), panel("divided by √d_k", 5)];
  table = numbers({ caption: "Standard deviation of the scores, and mean of the weights" });

  build() {
    const width = slider({
      label: "width of queries and keys, d_k", min: LEAST, max: MOST, value: START,
      format: (power) => grouped(2 ** power),
      on: (power) => {
        this.power = power;
        const [bare, divided] = this.update();
        this.say(`At d_k ${2 ** power}, the largest weight is ` +
          `${percent(bare.largest[0])} without the division, ` +
          `${percent(divided.largest[0])} with it.`);
      },
    });
    return [
      hint(h("b", {}, "Raise d_k"), " and watch the left side. The queries and keys are " +
        "random, so no key deserves more than another."),
      width.element,
      h("div", { class: "live-parts width-parts" }, ...this.panels.map((x) => x.element)),
      this.table.element,
    ];
  }

  update() {
    const width = 2 ** this.power;
    const raw = randomScores(width);
    const both = [1, 1 / Math.sqrt(width)].map((scale) => measure(raw, scale));
    both.forEach((measured, i) => this.panels[i].update(measured));
    this.table.update({
      columns: ["", "not divided", "divided"],
      rows: [
        ["standard deviation", ...both.map((x) => fixed(x.deviation))],
        ...Array.from({ length: SHOWN }, (_, rank) =>
          [`weight ${rank + 1}`, ...both.map((x) => fixed(x.largest[rank], 3))]),
      ],
    });
    return both;
  }
}

const [WIDE, HIGH, BINS] = [300, 84, 50];

/**
 * One side: how the scores are spread, and the largest weights.
 * @param {string} title
 * @param {number} reach of the axis of scores, to both sides
 */
function panel(title, reach) {
  const deviation = h("b", { class: "number" });
  const largest = h("b", { class: "number" });
  const bins = svg("path", { class: "width-bins" });
  const bars = Array.from({ length: SHOWN }, (_, i) =>
    svg("rect", { class: "width-bar", x: i * 30 + 3, width: 24, rx: 2 }));
  const histogram = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH + 20}`, "aria-hidden": true },
    bins, svg("path", { class: "width-axis", d: `M0 ${HIGH}h${WIDE}` }),
    ...[-1, -0.5, 0, 0.5, 1].map((part) => svg("text", {
      class: "soft", x: WIDE * (0.5 + 0.46 * part), y: HIGH + 16, "text-anchor": "middle",
      text: fixed(part * reach, reach < 10 && part % 1 ? 1 : 0),
    })));
  const weights = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH + 20}`, "aria-hidden": true },
    ...bars, svg("path", { class: "width-axis", d: `M0 ${HIGH}h${WIDE}` }),
    ...bars.map((_, i) => svg("text", {
      class: "soft", x: i * 30 + 15, y: HIGH + 16, "text-anchor": "middle", text: i + 1,
    })));
  const element = h("div", { class: "width-panel" },
    h("p", { class: "live-title", text: title }),
    h("p", {}, "standard deviation of the scores ", deviation), histogram,
    h("p", {}, "largest weight, mean of the rows ", largest), weights);
  return {
    element,
    /** @param {Measured} measured */
    update(measured) {
      deviation.textContent = fixed(measured.deviation);
      largest.textContent = percent(measured.largest[0]);
      const counts = new Array(BINS).fill(0);
      for (const score of measured.scores) {
        const bin = Math.floor((score / reach / 0.92 + 1) / 2 * BINS);
        if (bin >= 0 && bin < BINS) counts[bin] += 1;
      }
      const most = Math.max(...counts);
      const step = WIDE / BINS;
      set(bins, { d: `M0 ${HIGH}${counts.map((count) =>
        `V${HIGH - (count / most) * (HIGH - 4)}h${step}`).join("")}V${HIGH}Z` });
      bars.forEach((bar, i) => {
        const high = Math.max(measured.largest[i] * (HIGH - 2), 0.5);
        set(bar, { y: HIGH - high, height: high });
      });
    },
  };
}

customElements.define("live-width", LiveWidth);
