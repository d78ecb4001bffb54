// <live-cache-bytes>: how much memory a KV cache takes: the formula with the reader's
// sizes in it, and a line over the number of tokens.

import { cacheBytes, MODELS, readable } from "../formulas/cache.js";
import { drawAxes, logarithmic, place } from "../ui/chart.js";
import { choice, slider } from "../ui/controls.js";
import { h, set, svg } from "../ui/dom.js";
import { fitted } from "../ui/fit.js";
import { grouped } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";

/** @typedef {import("../formulas/cache.js").Sizes} Sizes */
/** @typedef {"layers" | "texts" | "kvHeads" | "length" | "headDim"} Name */

const GPU = 80e9; // bytes: the memory of the GPUs of the chapter on scaling out
const [LEAST, MOST] = [2 ** 4, 2 ** 17]; // tokens
/** The factors of the formula, and which values their sliders have.
 * @type {Record<Name, {label: string, values: number[]}>} */
const FACTORS = {
  layers: { label: "layers N", values: range(1, 64) },
  texts: { label: "texts at once B", values: doubling(1, 256) },
  kvHeads: { label: "key/value heads G", values: range(1, 32) },
  length: { label: "tokens L", values: [11, ...doubling(LEAST, MOST)] },
  headDim: { label: "width of a head", values: doubling(16, 256) },
};
const DTYPES = { 4: "float32", 2: "bfloat16", 1: "8 bits" };

class CacheBytes extends LivePiece {
  static style = new URL("cache-bytes.css", import.meta.url);

  model = MODELS[4];
  texts = 1;
  length = this.model.length;
  /** @type {Sizes} */
  sizes = { ...this.model.sizes };

  build() {
    this.models = h("select", { onchange: (/** @type {Event} */ event) => this.#take(
      /** @type {HTMLSelectElement} */ (event.target).value) },
      ...MODELS.map(({ name }) => h("option", { text: name })), h("option", { text: "my own" }));
    this.sliders = Object.fromEntries(Object.entries(FACTORS).map(([name, { label, values }]) => {
      const key = /** @type {Name} */ (name);
      return [name, slider({
        label, min: 0, max: values.length - 1, value: nearest(values, this.#value(key)),
        format: (place) => grouped(values[place]), on: (place) => this.#set(key, values[place]),
      })];
    }));
    this.dtype = choice({
      label: "a number is", value: "2",
      options: Object.entries(DTYPES).map(([value, label]) => ({ value, label })),
      on: (value) => {
        this.sizes.bytes = Number(value);
        this.#changed();
      },
    });
    this.formula = h("p", { class: "cache-formula number" });
    this.sentence = h("p", { class: "live-sentence" });
    this.chart = fitted(() => this.#draw());
    this.axes = svg("g");
    this.line = svg("path", { class: "cache-line" });
    this.gpu = svg("path", { class: "cache-gpu" });
    this.gpuName = svg("text", { class: "soft", text: "80 GB, one large GPU" });
    this.dot = svg("circle", { class: "cache-dot", r: 6 });
    this.dotName = svg("text", { class: "strong halo" });
    this.others = svg("g");
    this.chart.element.append(this.axes, this.others, this.gpu, this.gpuName, this.line, this.dot, this.dotName);
    this.table = numbers({ caption: "The bytes of the cache against the number of tokens" });
    return [
      hint("Take a model, then change one size: which of them would you give up first?"),
      h("div", { class: "live-row" },
        h("label", { class: "live-select" }, "model", this.models), this.dtype.element),
      h("div", { class: "live-sliders" },
        ...Object.values(this.sliders).map(({ element }) => element)),
      this.formula, this.chart.element, this.sentence, this.table.element,
    ];
  }

  update() {
    if (!this.models || !this.sliders || !this.dtype) return;
    for (const [name, each] of Object.entries(this.sliders)) {
      const key = /** @type {Name} */ (name);
      each.value = nearest(FACTORS[key].values, this.#value(key));
    }
    this.dtype.value = String(this.sizes.bytes);
    this.models.value = this.model ? this.model.name : "my own";
    this.#draw();
  }

  /** @param {Name} name */
  #value(name) {
    if (name === "texts") return this.texts;
    return name === "length" ? this.length : this.sizes[name];
  }

  /**
   * @param {Name} name
   * @param {number} value
   */
  #set(name, value) {
    if (name === "texts") this.texts = value;
    else if (name === "length") this.length = value;
    else this.sizes[name] = value;
    this.#changed();
  }

  /** @param {string} name of a model */
  #take(name) {
    const model = MODELS.find((each) => each.name === name);
    if (!model) return;
    this.sizes = { ...model.sizes };
    this.length = model.length;
    this.texts = 1;
    this.#changed();
  }

  #changed() {
    const same = (/** @type {typeof MODELS[0]} */ { sizes, length }) =>
      this.texts === 1 && this.length === length &&
      ["layers", "kvHeads", "headDim", "bytes"].every((name) =>
        sizes[/** @type {keyof Sizes} */ (name)] === this.sizes[/** @type {keyof Sizes} */ (name)]);
    this.model = /** @type {typeof MODELS[0]} */ (MODELS.find(same));
    this.update();
    this.say(`${this.formula?.textContent} ${this.sentence?.textContent}`);
  }

  #draw() {
    const { sizes, length, texts } = this;
    const bytes = cacheBytes(sizes, length, texts);
    const one = cacheBytes(sizes, length);
    const factors = [2, sizes.layers, texts, sizes.kvHeads, length, sizes.headDim, sizes.bytes];
    const names = ["k and v", "N", "B", "G", "L", "dₖ", "b"];
    this.formula?.replaceChildren(...factors.flatMap((factor, i) => [
      i ? " · " : "",
      h("span", { class: "factor" }, grouped(factor), h("sub", { text: names[i] })),
    ]), " = ", h("b", { text: `${grouped(bytes)} bytes` }));
    if (this.sentence) {
      const fit = Math.floor(GPU / one);
      const taken = texts === 1 ? "One text takes" : `${grouped(texts)} texts take`;
      const fitting = fit === 1 ? "one text" : `${fit ? grouped(fit) : "no"} texts`;
      this.sentence.textContent = `${taken} ${readable(bytes)}, and each further token of a ` +
        `text ${readable(cacheBytes(sizes, 1))}. An empty 80 GB would hold ${fitting} of ` +
        "this length.";
    }
    this.#drawLine(bytes);
  }

  /** @param {number} bytes at the chosen length */
  #drawLine(bytes) {
    if (!this.chart || !this.axes) return;
    this.chart.height = 310;
    const area = { left: 62, right: this.chart.width - 60, top: 14, bottom: 264 };
    const [low, high] = [10 ** 2, 10 ** 14];
    const x = logarithmic([8, MOST], [area.left, area.right]);
    const y = logarithmic([low, high], [area.bottom, area.top]);
    const yTicks = [3, 6, 9, 12].map((n) => ({ value: 10 ** n, label: readable(10 ** n).replace(".00", "") }));
    const xTicks = [16, 128, 1024, 8192, 65536].map((n) => ({ value: n, label: grouped(n) }));
    drawAxes(this.axes, area, { x, y, xTicks, yTicks, xName: "tokens" });
    const at = (/** @type {number} */ n) => cacheBytes(this.sizes, n, this.texts);
    set(/** @type {SVGPathElement} */ (this.line), {
      d: `M${x(8)} ${y(at(8))}L${x(MOST)} ${y(at(MOST))}` });
    this.others?.replaceChildren(...[32, 1].flatMap((kvHeads) => {
      const other = (/** @type {number} */ n) =>
        y(cacheBytes({ ...this.sizes, kvHeads }, n, this.texts));
      return [
        svg("path", { class: "cache-other", d: `M${x(8)} ${other(8)}L${x(MOST)} ${other(MOST)}` }),
        svg("text", { class: "soft", x: x(MOST) + 6, y: other(MOST) + 5, text: `G = ${kvHeads}` }),
      ];
    }));
    set(/** @type {SVGPathElement} */ (this.gpu), { d: `M${area.left} ${y(GPU)}H${area.right}` });
    set(/** @type {SVGTextElement} */ (this.gpuName), { x: area.left + 6, y: y(GPU) - 6 });
    const [px, py] = [x(this.length), y(bytes)];
    place(/** @type {SVGCircleElement} */ (this.dot), px, py);
    const right = px > (area.left + area.right) / 2;
    set(/** @type {SVGTextElement} */ (this.dotName), { x: px + (right ? 6 : 12), y: py + 26,
      "text-anchor": right ? "end" : "start", text: readable(bytes) });
    this.table?.update({ columns: ["tokens", "bytes", ""],
      rows: doubling(LEAST, MOST).map((n) => [grouped(n), grouped(at(n)), readable(at(n))]) });
  }
}

/**
 * @param {number} from
 * @param {number} to
 */
function range(from, to) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/**
 * @param {number} from
 * @param {number} to
 */
function doubling(from, to) {
  return Array.from({ length: Math.log2(to / from) + 1 }, (_, i) => from * 2 ** i);
}

/**
 * The place of a value, or of the nearest one.
 * @param {number[]} values
 * @param {number} value
 */
function nearest(values, value) {
  return values.reduce((best, each, i) =>
    (Math.abs(each - value) < Math.abs(values[best] - value) ? i : best), 0);
}

customElements.define("live-cache-bytes", CacheBytes);
