// <live-codes>: eight weights as codes of a few bits, with a scale for each group. It has
// the chapter's weights; the largest of them can be made larger still.

import { bitsOfWeight, dequantize, quantize, relativeError }
  from "../formulas/quantisation.js";
import { choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed, percent } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { lines } from "./codes/lines.js";

const WEIGHTS = [0.7, -0.2, 0.1, 0.33, 7, -2, 1, 3.3];
const LARGEST = 4; // the place of the weight that can be changed
const SIZES = [3.5, 7, 14, 35, 70]; // of that weight
const SMALL = 4; // so many of them, the first, are small

class LiveCodes extends LivePiece {
  static style = new URL("codes.css", import.meta.url);

  sentence = h("p", { class: "live-sentence" });
  table = numbers({ caption: "The eight weights", summary: "What is kept, and what is read" });

  build() {
    const on = () => {
      this.update();
      this.say(this.sentence.textContent);
    };
    this.bits = slider({ label: "bits of a code, b", min: 2, max: 8, value: 4, on });
    this.largest = slider({ label: "largest weight", min: 0, max: SIZES.length - 1, value: 1,
      format: (place) => String(SIZES[place]), on });
    this.group = choice({ label: "weights with one scale, g", value: "4", on,
      options: ["2", "4", "8"].map((value) => ({ value, label: value })) });
    this.lines = lines(() => this.update());
    this.table.element.open = true;
    return [
      hint(h("b", {}, "Give all eight weights one scale"), ": what is read in the place of the " +
        "small ones? Then take bits away, or make the largest weight larger."),
      h("div", { class: "live-row" }, this.bits.element, this.largest.element,
        this.group.element),
      this.lines.element,
      h("p", { class: "live-note" }, "A line for each group: marks are the values of its codes, " +
        "dots the weights. ", h("b", { class: "codes-zero", text: "Red" }),
        ": a weight that becomes 0."),
      this.sentence, this.table.element,
    ];
  }

  update() {
    const bits = this.bits?.value ?? 0;
    const group = Number(this.group?.value);
    const weights = WEIGHTS.map((weight, i) =>
      (i === LARGEST ? SIZES[this.largest?.value ?? 0] : weight));
    const quantized = quantize(weights, bits, group);
    const read = dequantize(quantized);
    this.lines?.update(weights, read, quantized.scales, 2 ** (bits - 1) - 1);
    const zeros = read.filter((value) => value === 0).length;
    const part = (/** @type {number} */ from, /** @type {number} */ to) =>
      percent(relativeError(weights.slice(from, to), read.slice(from, to)), 1);
    this.sentence.textContent = `${bits} bits, a scale for ${group}: ` +
      `${fixed(bitsOfWeight(bits, group), 1)} bits a weight with a scale of 16 bits. ` +
      `${zeros} of ${weights.length} become 0. Error of all ${part(0, weights.length)}, of the ` +
      `four small ones ${part(0, SMALL)}.`;
    this.table.update({
      columns: ["weight", "code", "scale", "read", "off by"],
      rows: weights.map((weight, i) => [fixed(weight), fixed(quantized.codes[i], 0),
        fixed(quantized.scales[Math.floor(i / group)], 4), fixed(read[i], 3),
        fixed(read[i] - weight, 3)]),
    });
  }
}

customElements.define("live-codes", LiveCodes);
