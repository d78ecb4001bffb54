// <live-config>: what a config.json says. A reader takes a model, or pastes a config: its
// block is drawn, its parameters are counted part by part, and the bytes of its cache.

import { cacheBytes, parse, read, Refused } from "../formulas/config.js";
import { readable } from "../formulas/cache.js";
import { choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fitted } from "../ui/fit.js";
import { grouped, percent } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { drawBlock } from "./config/block.js";
import { cacheRows, drawLayers, kindName, legend } from "./config/layers.js";
import { cacheTable, partsTable, remarks } from "./config/tables.js";

/** @typedef {import("../formulas/config.js").Reading} Reading */
/** @typedef {import("../formulas/config.js").Known} Known */

const FIRST = "llama-3-8b";
const FAMILIES = new URL("../../families/", import.meta.url); // seen from this folder
const PASTED = "my own";
const DTYPES = { 4: "float32", 2: "bfloat16", 1: "8 bits" };

class ConfigReader extends LivePiece {
  static style = new URL("config.css", import.meta.url);

  /** @type {Known | null} */
  known = null;
  /** @type {Reading | null} */
  reading = null;
  kind = 0; // of the layers that is drawn
  bytes = 2; // of a number
  /** @type {number[]} */
  lengths = [1];
  length = 1;

  async prepare() {
    const answer = await fetch(new URL("../families.json", import.meta.url));
    if (!answer.ok) throw new Error(`families.json was not loaded: ${answer.status}`);
    this.known = await answer.json();
  }

  build() {
    const families = Object.entries(this.known?.families ?? {});
    this.models = h("select", { onchange: () => this.#take(this.models?.value ?? "") },
      ...families.filter(([, { presets }]) => Object.keys(presets).length).map(
        ([kind, { presets }]) => h("optgroup", { label: kind },
          ...Object.keys(presets).map((name) => h("option", { text: name })))),
      h("option", { text: PASTED }));
    this.text = h("textarea", { rows: 9, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      oninput: () => this.#edited() });
    this.wrong = h("p", { class: "config-wrong" });
    this.notes = h("ul", { class: "config-notes" });
    this.sentence = h("p", { class: "live-sentence config-sum-up" });
    this.strip = fitted(() => this.#draw());
    this.legend = h("p", { class: "config-legend" });
    this.kinds = h("div");
    this.block = h("div", { class: "config-drawn" });
    this.parts = h("table", { class: "live-table config-table" });
    this.dtype = choice({ label: "a number is", value: String(this.bytes),
      options: Object.entries(DTYPES).map(([value, label]) => ({ value, label })),
      on: (value) => {
        this.bytes = Number(value);
        this.#told();
      } });
    this.slider = slider({ label: "tokens L", min: 0, max: 1, value: 0,
      format: (place) => grouped(this.lengths[place] ?? 1),
      on: (place) => {
        this.length = this.lengths[place];
        this.#told();
      } });
    this.cacheSentence = h("p", { class: "live-sentence" });
    this.cache = h("table", { class: "live-table config-table" });
    this.result = h("div", { class: "config-result" },
      this.sentence, h("p", { class: "live-title", text: "Its layers" }), this.strip.element, this.legend, this.kinds,
      h("div", { class: "config-sides" }, this.block,
        h("div", {}, h("p", { class: "live-title", text: "Its parameters" }), scrolled("The parameters", this.parts))),
      h("p", { class: "live-title", text: "Its cache" }),
      h("div", { class: "live-row" }, this.slider.element, this.dtype.element),
      this.cacheSentence, scrolled("The bytes of the cache", this.cache));
    window.addEventListener("hashchange", () => {
      const name = this.#named();
      if (this.isConnected && name) this.#take(name);
    });
    this.#fill(this.#named() ?? FIRST);
    return [
      hint("Take a model, or paste the ", h("b", { text: "config.json" }), " of another one. Then change a " +
        "number in it: what costs the most?"),
      h("label", { class: "live-select" }, "model", this.models),
      h("label", { class: "config-text" }, "config.json", this.text),
      this.wrong, this.notes, this.result,
    ];
  }

  /** Where the page of families says what is special in this one. @param {string} kind */
  #family(kind) {
    const section = this.known?.families[kind].section;
    return section ? ["Read as ", h("a", { href: new URL(`#${section}`, FAMILIES).href, text: kind }), "."] : [];
  }

  /** The preset that the address names, if there is one. */
  #named() {
    const name = new URLSearchParams(location.hash.slice(1)).get("config");
    return name !== null && this.#preset(name) ? name : null;
  }

  /** @param {string} name */
  #preset(name) {
    for (const [kind, { defaults, presets }] of Object.entries(this.known?.families ?? {})) {
      if (Object.hasOwn(presets, name)) return { ...defaults, ...presets[name], model_type: kind };
    }
    return null;
  }

  /** Write a preset into the field. @param {string} name */
  #fill(name) {
    const config = this.#preset(name);
    if (!config || !this.text || !this.models) return;
    const { model_type, ...words } = config;
    this.text.value = JSON.stringify({ model_type, ...words }, null, 2);
    this.models.value = name;
    this.#read();
  }

  /** @param {string} name of a preset */
  #take(name) {
    if (name === PASTED) return void this.text?.focus();
    this.#fill(name);
    history.replaceState(null, "", `#config=${name}`);
    this.#told();
  }

  #edited() {
    if (this.models) this.models.value = PASTED;
    if (location.hash.startsWith("#config=")) history.replaceState(null, "", location.pathname + location.search);
    this.#read();
    this.#told();
  }

  /** Read what stands in the field. */
  #read() {
    this.kind = 0;
    try {
      this.reading = read(parse(this.text?.value ?? ""), /** @type {Known} */ (this.known));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.reading = null;
      if (this.wrong) this.wrong.textContent = error.message;
      return;
    }
    const { maxLen, kinds } = this.reading;
    if (this.wrong) this.wrong.textContent = "";
    this.lengths = lengthsTo(maxLen);
    this.slider?.limit(0, this.lengths.length - 1);
    this.length = Math.min(8192, maxLen);
    const { positions } = this.reading.around;
    const options = kinds.map(({ layer, count }, i) => ({
      value: String(i), label: `${count} × ${kindName(layer, positions)}` }));
    this.kinds?.replaceChildren(...(kinds.length < 2 ? [] : [choice({ label: "drawn is one of", value: "0",
      options, on: (value) => {
        this.kind = Number(value);
        this.#told();
      } }).element]));
  }

  #told() {
    this.update();
    const said = this.reading ? [this.sentence, this.cacheSentence] : [this.wrong];
    this.say(said.map((each) => each?.textContent).join(" "));
  }

  update() {
    const { reading, result, notes } = this;
    if (!result || !notes || !this.slider) return;
    result.hidden = !reading;
    this.text?.setAttribute("aria-invalid", String(!reading));
    notes.replaceChildren(...(reading ? remarks(reading) : []).map((text) => h("li", { text })));
    if (!reading) return;
    const { parameters, active, unknown } = reading;
    const doubt = unknown.length ? ", if the words that are not known change none" : "";
    const part = active < parameters
      ? ` One token uses ${grouped(active)} of them, ${percent(active / parameters, 1)}.` : "";
    this.sentence?.replaceChildren(h("b", { text: `${grouped(parameters)} parameters` }),
      `${doubt}: ${readable(parameters * this.bytes)} of weights in ${dtype(this.bytes)}.${part} `, ...this.#family(reading.kind));
    this.#draw();
    this.parts?.replaceChildren(...shown(partsTable(reading)));
    this.#writeCache(reading);
  }

  #draw() {
    const { reading, strip, block } = this;
    if (!reading || !strip || !block) return;
    const { layer, count } = reading.kinds[this.kind];
    drawLayers(strip, reading.layers, layer);
    this.legend?.replaceChildren(...legend(reading));
    block.replaceChildren(drawBlock(reading, layer, `${count} ×`));
  }

  /** @param {Reading} reading */
  #writeCache(reading) {
    const { length, bytes } = this;
    if (this.slider) this.slider.value = this.lengths.indexOf(nearest(this.lengths, length));
    const total = cacheBytes(reading, length, bytes);
    const windows = reading.kinds.some(({ layer }) => layer.window !== null && 2 * layer.window < length);
    if (this.cacheSentence) {
      this.cacheSentence.textContent = `A text of ${grouped(length)} tokens keeps ${readable(total)} in ` +
        `${dtype(bytes)}.${windows ? " A layer with a window keeps no more than two windows." : ""}`;
    }
    this.cache?.replaceChildren(...shown(cacheTable(cacheRows(reading, length, bytes), total)));
  }
}

/** @param {number} bytes */
function dtype(bytes) {
  return DTYPES[/** @type {keyof typeof DTYPES} */ (bytes)];
}

/**
 * A table that may be wider than a phone: the keyboard can scroll it.
 * @param {string} label
 * @param {HTMLElement} table
 */
function scrolled(label, table) {
  return h("div", { class: "live-scroll", role: "group", "aria-label": label, tabindex: 0 }, table);
}

/** @param {(Node | false)[]} children */
function shown(children) {
  return /** @type {Node[]} */ (children.filter(Boolean));
}

/** The powers of 2 up to a length, and the length. @param {number} longest */
function lengthsTo(longest) {
  const found = [];
  for (let n = 1; n < longest; n *= 2) found.push(n);
  return [...found, longest];
}

/** @param {number[]} values @param {number} value */
function nearest(values, value) {
  return values.reduce((best, each) => (Math.abs(each - value) < Math.abs(best - value) ? each : best));
}

customElements.define("live-config", ConfigReader);
