// <live-cache>: a text is written token by token, with and without a KV cache: what is
// computed, what is kept, and how many multiplications and bytes that is.

import { cacheBytes, MODELS, multiplications, steps } from "../formulas/cache.js";
import { button, choice, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { grouped } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { stepDrawing, WORDS } from "./cache/drawing.js";

const PROMPT = 4; // tokens
const PACE = 1400; // ms for a step
const GPTS = MODELS.filter(({ name }) => name.startsWith("GPT"));

class Cache extends LivePiece {
  static style = new URL("cache.css", import.meta.url);

  step = 2; // what a cache does shows from the second step on
  cached = true;
  model = GPTS[0];
  #timer = 0;

  build() {
    this.back = button("Back", () => this.#go(this.step - 1));
    this.next = button("Next token", () => this.#go(this.step + 1));
    this.play = button("Play", () => (this.#timer ? this.#stop() : this.#start()));
    const on = toggle({ label: "KV cache", value: true, on: (value) => {
      this.cached = value;
      this.#changed();
    } });
    const model = choice({
      label: "the model", value: this.model.name,
      options: GPTS.map(({ name }) => ({ value: name, label: name })),
      on: (name) => {
        this.model = GPTS.find((each) => each.name === name) ?? GPTS[0];
        this.#changed();
      },
    });
    this.drawing = stepDrawing(() => this.#draw(false));
    this.sentence = h("p", { class: "live-sentence" });
    this.rows = h("tbody");
    this.total = h("tfoot");
    const columns = ["step", "tokens", "multiplications", "bytes kept"];
    return [
      hint("Write the text token by token. Then switch the cache off and write it again."),
      h("div", { class: "live-row" }, h("div", { class: "player" }, this.back, this.next,
        this.play), on.element, model.element),
      this.drawing.element,
      h("ul", { class: "cell-key", "aria-hidden": "true" },
        ...Object.entries({ new: "computed now", kept: "kept", empty: "room for later" })
          .map(([state, text]) => h("li", {}, h("span", { class: `cell ${state}` }), text))),
      this.sentence,
      h("div", { class: "live-scroll", role: "group", tabindex: 0,
        "aria-label": "The work of each step" },
        h("table", { class: "live-table work" },
          h("caption", { text: "What each step reads, computes in all layers, and keeps" }),
          h("thead", {}, h("tr", {}, ...columns.map((text) =>
            h("th", { scope: "col", text })))), this.rows, this.total)),
    ];
  }

  disconnectedCallback() {
    this.#stop();
  }

  update() {
    this.#draw(false);
  }

  /** @param {number} step */
  #go(step) {
    this.#stop();
    this.step = step;
    this.#changed();
  }

  #changed() {
    this.#draw(!this.still);
    this.say(this.sentence?.textContent ?? "");
  }

  #start() {
    if (this.step === this.#steps(this.cached).length) this.step = 0;
    this.#timer = window.setInterval(() => this.#tick(), PACE);
    this.#tick();
  }

  #tick() {
    this.step += 1;
    if (this.step === this.#steps(this.cached).length) this.#stop();
    this.#changed();
  }

  #stop() {
    window.clearInterval(this.#timer);
    this.#timer = 0;
    if (this.play) this.play.textContent = "Play";
  }

  /** @param {boolean} cached */
  #steps(cached) {
    return steps(PROMPT, WORDS.length, cached);
  }

  /** @param {boolean} moving */
  #draw(moving) {
    const { sizes } = this.model;
    const all = this.#steps(this.cached);
    const others = this.#steps(!this.cached);
    const now = all[this.step - 1];
    this.drawing?.update(now, moving);
    if (this.back && this.next && this.play) {
      this.back.disabled = this.step === 1;
      this.next.disabled = this.step === all.length;
      this.play.textContent = this.#timer ? "Pause" : "Play";
    }
    if (this.sentence) this.sentence.textContent = this.#told(now);
    const work = (/** @type {{tokens: number, length: number}} */ { tokens, length }) =>
      multiplications(sizes, tokens, length);
    const most = Math.max(...all.map(work), ...others.map(work));
    this.rows?.replaceChildren(...all.map((each, i) => {
      const reached = i < this.step;
      const bar = h("span", { class: "bar" });
      bar.style.setProperty("--part", String(reached ? work(each) / most : 0));
      const kept = this.cached ? cacheBytes(sizes, each.length) : 0;
      const cells = [each.tokens, work(each), kept].map(grouped);
      return h("tr", { class: i === this.step - 1 ? "now" : null },
        h("th", { scope: "row", text: String(i + 1) }),
        ...cells.map((text, j) => h("td", {}, j === 1 && bar, reached ? text : "–")));
    }));
    const total = (/** @type {string} */ name, /** @type {typeof all} */ their) => {
      const done = their.slice(0, this.step);
      const sum = (/** @type {number[]} */ numbers) => numbers.reduce((a, b) => a + b, 0);
      const cells = [sum(done.map(({ tokens }) => tokens)), sum(done.map(work))].map(grouped);
      return h("tr", {}, h("th", { scope: "row", text: name }),
        ...cells.map((text) => h("td", { text })), h("td"));
    };
    this.total?.replaceChildren(total("so far", all),
      total(this.cached ? "without cache" : "with cache", others));
  }

  /**
   * What happens in a step, in words.
   * @param {{tokens: number, length: number}} step
   */
  #told({ tokens, length }) {
    const { layers, kvHeads, headDim, bytes } = this.model.sizes;
    const kept = this.cached
      ? ` Kept: 2 · ${layers} · ${kvHeads} · ${length} · ${headDim} · ${bytes} = ` +
        `${grouped(cacheBytes(this.model.sizes, length))} bytes.`
      : " Nothing is kept.";
    if (length === PROMPT) {
      return `Step 1: the prompt of ${tokens} tokens is read at once, in either case.${kept}`;
    }
    const begin = `Step ${this.step}: “${WORDS[length - 1]}” is new. `;
    return begin + (tokens === 1
      ? `One token is read: its query meets ${length} keys, ${length - 1} of them kept.`
      : `All ${tokens} tokens are read again: ${tokens} keys and values are computed in each ` +
        `layer, and ${tokens - 1} of them were known.`) + kept;
  }
}

customElements.define("live-cache", Cache);
