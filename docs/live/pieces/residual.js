// <live-residual>: how a signal goes up through 1 to 64 layers and a gradient comes back,
// with and without a residual connection and a norm. The network is the chapter's, with
// its seed; it is run forward and backward here, layer by layer.

import { alike, drawStack, Run } from "../formulas/depth.js";
import { anySize } from "../ui/chart.js";
import { button, choice, slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { curves } from "./residual/curves.js";
import { KINDS, kindOf } from "./residual/kinds.js";
import { layerDrawing } from "./residual/layer.js";

/** @typedef {import("./residual/kinds.js").Kind} Kind */
/** @typedef {{signals: number[], gradients: number[], alike: number}} Result */

const SLICE = 12; // ms of computing between two pictures
const FRAMES = 40; // of the way up and back, where it is shown

class Residual extends LivePiece {
  static style = new URL("residual.css", import.meta.url);

  depth = 24;
  strong = false;
  kind = kindOf(false, "none");
  /** What was tried at this depth, with these weights. @type {Map<Kind, Result>} */
  results = new Map();
  /** The kinds that the reader has tried, at any depth. @type {Set<Kind>} */
  tried = new Set([this.kind]);
  #runs = 0; // a newer run ends the one before

  async prepare() {
    await this.#compute(this.kind);
    this.dataset.busy = "false"; // "true" while anything that was tried is still to be run
  }

  build() {
    const start = (/** @type {boolean} */ shown) => void this.#start(shown);
    this.residual = toggle({ label: "residual connection", value: false,
      on: () => start(true) });
    this.norm = choice({
      label: "norm", value: /** @type {import("../formulas/depth.js").Norm} */ ("none"),
      options: [{ value: "none", label: "none" }, { value: "before", label: "before the part" },
        { value: "after", label: "after the sum" }],
      on: () => start(true),
    });
    this.weights = choice({
      label: "weights", value: "torch",
      options: [{ value: "torch", label: "PyTorch’s own" }, { value: "he", label: "like He’s" }],
      on: () => start(true),
    });
    this.layers = slider({ label: "layers", min: 1, max: 64, value: this.depth,
      on: () => start(false) });
    this.layer = layerDrawing();
    this.code = h("code", { class: "layer-code" });
    this.chart = curves(() => this.update());
    this.rows = h("tbody");
    this.sentence = h("p", { class: "live-sentence" });
    this.table = numbers({ caption: "Signal and gradient after each layer" });
    const columns = ["around the part", "signal", "gradient", "alike"];
    return [
      hint("Switch the residual connection on, and add layers: how much of the gradient ",
        "comes back to the input?"),
      h("div", { class: "live-row" }, this.residual.element, this.norm.element,
        this.weights.element, this.layers.element, button("Run again", () => start(true))),
      h("div", { class: "layer-box" }, this.layer.element, this.code),
      this.chart.element,
      this.sentence,
      h("div", { class: "live-scroll", role: "group", tabindex: 0,
        "aria-label": "What you tried" },
        h("table", { class: "live-table tried" },
          h("caption", { text: "What you tried: signal at the end, gradient at the " +
            "input, and how much alike the tokens are at the end" }),
          h("thead", {}, h("tr", {}, ...columns.map((text) =>
            h("th", { scope: "col", text })))), this.rows)),
      h("p", { class: "live-note", text: "The network is the chapter’s, with its seed: " +
        "feed-forward networks of width 64, inner width 256, and 32 random tokens, run forward " +
        "and backward in your browser." }),
      this.table.element,
    ];
  }

  update() {
    this.layer?.update(this.kind);
    if (this.code) this.code.textContent = this.kind.code;
    const result = this.results.get(this.kind);
    if (result) this.#show(result);
  }

  /** Take what the controls say, and run. @param {boolean} shown step by step */
  async #start(shown) {
    if (!this.residual || !this.norm || !this.weights || !this.layers) return;
    const strong = this.weights.value === "he";
    if (this.depth !== this.layers.value || this.strong !== strong) this.results.clear();
    this.depth = this.layers.value;
    this.strong = strong;
    this.kind = kindOf(this.residual.value, this.norm.value || "none");
    this.tried.add(this.kind);
    this.layer?.update(this.kind);
    if (this.code) this.code.textContent = this.kind.code;
    this.dataset.busy = "true";
    if (!await this.#compute(this.kind, shown && !this.still)) return;
    this.update();
    this.say(this.sentence?.textContent ?? "");
    for (const kind of this.tried) {
      if (!this.results.has(kind) && !await this.#compute(kind, false, false)) return;
      this.update();
    }
    this.dataset.busy = "false";
  }

  /**
   * Run a stack, in slices. Returns false if a newer run has begun meanwhile.
   * @param {Kind} kind
   * @param {boolean} [shown]
   * @param {boolean} [newer] it ends what runs
   */
  async #compute(kind, shown = false, newer = true) {
    if (newer) this.#runs += 1;
    const number = this.#runs;
    const run = new Run(drawStack(this.depth, this.strong), kind);
    const atOnce = Math.ceil((2 * run.depth) / FRAMES);
    let [done, since] = [0, performance.now()];
    while (done < 2 * run.depth) {
      if (done < run.depth) run.forward();
      else run.backward();
      done += 1;
      if (shown ? done % atOnce === 0 : performance.now() - since > SLICE) {
        if (shown) this.chart?.update(this.depth, [...this.#others(), this.#line(kind, run)]);
        await nextFrame();
        if (number !== this.#runs) return false;
        since = performance.now();
      }
    }
    this.results.set(kind, { signals: run.signals, gradients: run.gradients,
      alike: alike(run.x) });
    return true;
  }

  /** The lines of the other kinds that were tried. */
  #others() {
    return KINDS.filter((kind) => kind !== this.kind && this.results.has(kind))
      .map((kind) => ({ kind, now: false,
        lines: /** @type {Result} */ (this.results.get(kind)) }));
  }

  /**
   * @param {Kind} kind
   * @param {{signals: number[], gradients: number[]}} lines
   */
  #line(kind, lines) {
    return { kind, lines, now: true };
  }

  /** @param {Result} result */
  #show(result) {
    const { depth, kind } = this;
    this.chart?.update(depth, [...this.#others(), this.#line(kind, result)]);
    const first = result.gradients[0];
    const factor = (first / result.gradients[depth]) ** (1 / depth);
    const layers = depth === 1 ? "1 layer" : `${depth} layers`;
    if (this.sentence) {
      this.sentence.textContent = `${kind.said}, ${layers}: a gradient of 1 at the end ` +
        `reaches the input as ${anySize(first)}. Each layer multiplies it by ` +
        `${factor.toFixed(3)}, on average.`;
    }
    this.rows?.replaceChildren(...KINDS.flatMap((each) => {
      const its = this.results.get(each);
      if (!its) return [];
      const cells = [its.signals[depth], its.gradients[0]].map(anySize);
      return [h("tr", { class: each === kind ? "now" : null },
        h("th", { scope: "row" }, h("span", { class: `swatch ${each.ink}` }), each.name),
        ...[...cells, its.alike.toFixed(2)].map((text) => h("td", { text })))];
    }));
    this.table?.update({
      columns: ["after layer", "signal", "gradient"],
      rows: result.signals.map((signal, i) =>
        [i, anySize(signal), anySize(result.gradients[i])]),
    });
  }
}

function nextFrame() {
  return new Promise((done) => requestAnimationFrame(done));
}

customElements.define("live-residual", Residual);
