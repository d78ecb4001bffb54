// <live-decoding>: the probabilities of a next token under a temperature, top-k, top-p
// and min-p, and what comes out if a hundred tokens are drawn.

import { softmax } from "../engine/attention.js";
import { Matrix } from "../engine/linear.js";
import { draw, filtered, minPFilter, seededRandom, topKFilter, topPFilter }
  from "../engine/sampling.js";
import { button, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { bars } from "./decoding/bars.js";
import { EXAMPLES } from "./decoding/examples.js";

const DRAWS = 100;
const SEED = 0;

class Decoding extends LivePiece {
  static style = new URL("decoding.css", import.meta.url);

  example = EXAMPLES[0];
  /** How often each token was drawn. @type {number[]} */
  counts = [];
  random = seededRandom(SEED);

  build() {
    const on = () => this.#changed();
    const select = h("select", { onchange: () => {
      this.example = EXAMPLES[select.selectedIndex];
      this.topK?.limit(1, this.example.tokens.length);
      if (this.topK) this.topK.value = this.example.tokens.length;
      on();
    } }, ...EXAMPLES.map(({ name }) => h("option", { text: name })));
    const V = () => this.example.tokens.length;
    this.temperature = slider({ label: "temperature", min: 0.1, max: 3, step: 0.1, value: 1, on,
      format: (value) => fixed(value, 1) });
    this.topK = slider({ label: "top-k", min: 1, max: V(), value: V(), on,
      format: (value) => (value === V() ? "all" : String(value)) });
    this.topP = slider({ label: "top-p", min: 0.05, max: 1, step: 0.05, value: 1, on,
      format: (value) => fixed(value) });
    this.minP = slider({ label: "min-p", min: 0, max: 1, step: 0.05, value: 0, on,
      format: (value) => (value ? fixed(value) : "off") });
    this.bars = bars(() => this.#draw());
    this.sentence = h("p", { class: "live-sentence" });
    this.table = numbers({ caption: "The next token" });
    const controls = [this.temperature, this.topK, this.topP, this.minP];
    return [
      hint("Raise the temperature, then cut off the unlikely tokens again: with which filter ",
        "do fewer stay where the model is sure?"),
      h("div", { class: "live-row" },
        h("label", { class: "live-select" }, "the scores", select)),
      h("div", { class: "live-sliders" }, ...controls.map(({ element }) => element)),
      this.bars.element,
      h("ul", { class: "bar-key", "aria-hidden": "true" },
        ...Object.entries({ before: "what the model says", after: "what is drawn from",
          draws: "what was drawn" }).map(([kind, text]) =>
          h("li", {}, h("span", { class: `key ${kind}` }), text))),
      this.sentence,
      h("div", { class: "live-row" },
        button(`Draw ${DRAWS} tokens`, () => this.#drawTokens()),
        button("Forget them", () => this.#changed())),
      this.table.element,
    ];
  }

  update() {
    this.#draw();
  }

  /** New scores or filters: what was drawn before no longer belongs to them. */
  #changed() {
    this.counts = [];
    this.random = seededRandom(SEED);
    this.#draw();
    this.say(this.sentence?.textContent ?? "");
  }

  #drawTokens() {
    const probabilities = this.#probabilities(this.#kept());
    const { length } = this.example.tokens;
    const counts = this.counts.length ? [...this.counts] : new Array(length).fill(0);
    for (let i = 0; i < DRAWS; i++) counts[draw(probabilities, this.random)] += 1;
    this.counts = counts;
    this.#draw();
    this.say(this.sentence?.textContent ?? "");
  }

  #kept() {
    const { temperature, topK, topP, minP } = this.#filters();
    return filtered(this.example.logits, temperature, { topK, topP, minP });
  }

  #filters() {
    const { topK, topP, minP } = this;
    return {
      temperature: this.temperature?.value ?? 1,
      topK: topK && topK.value < this.example.tokens.length ? topK.value : null,
      topP: topP && topP.value < 1 ? topP.value : null,
      minP: minP && minP.value > 0 ? minP.value : null,
    };
  }

  /** @param {Float32Array} logits */
  #probabilities(logits) {
    return softmax(new Matrix(1, logits.length, logits)).data;
  }

  /** Which filter cut each token off: the filters one after the other. */
  #cuts() {
    const { temperature, topK, topP, minP } = this.#filters();
    let logits = filtered(this.example.logits, temperature);
    const cuts = this.example.tokens.map(() => "");
    const steps = /** @type {[string, number | null, typeof topKFilter][]} */ ([
      ["top-k", topK, topKFilter], ["top-p", topP, topPFilter], ["min-p", minP, minPFilter],
    ]);
    for (const [name, value, filter] of steps) {
      if (value === null) continue;
      logits = filter(logits, value);
      logits.forEach((logit, i) => {
        if (logit === -Infinity && !cuts[i]) cuts[i] = name;
      });
    }
    return cuts;
  }

  #draw() {
    const { tokens, logits } = this.example;
    const before = this.#probabilities(logits);
    const after = this.#probabilities(this.#kept());
    const cuts = this.#cuts();
    const draws = this.counts.reduce((a, b) => a + b, 0);
    const drawn = (/** @type {number} */ i) => this.counts[i] ?? 0;
    this.bars?.update(tokens.map((token, i) => ({ token, before: before[i], after: after[i],
      cut: cuts[i] && { "top-k": "k", "top-p": "p", "min-p": "m" }[cuts[i]] || "",
      drawn: drawn(i) })), draws);
    const kept = cuts.filter((cut) => !cut).length;
    const lost = 1 - this.#sum(after, before);
    if (this.sentence) {
      const all = kept === tokens.length;
      this.sentence.textContent = `${all ? "All" : kept} of ${tokens.length} tokens can be ` +
        `drawn, ${tokens[0]} with probability ${fixed(after[0])}. ` +
        (all ? "" : `The model itself gave ${fixed(lost)} to those that were cut off. `) +
        (draws ? `Of ${draws} tokens, ${drawn(0)} were ${tokens[0]}.` : "");
    }
    this.table?.update({
      columns: ["token", "the model says", "drawn with", "cut off by",
        ...(draws ? [`drawn, of ${draws}`] : [])],
      rows: tokens.map((token, i) => [token, fixed(before[i], 4), fixed(after[i], 4),
        cuts[i] || "–", ...(draws ? [drawn(i)] : [])]),
    });
  }

  /**
   * What the model gave to the tokens that are left.
   * @param {Float32Array} after
   * @param {Float32Array} before
   */
  #sum(after, before) {
    return after.reduce((sum, p, i) => (p > 0 ? sum + before[i] : sum), 0);
  }
}

customElements.define("live-decoding", Decoding);
