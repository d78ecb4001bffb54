// <live-beam>: beam search on the chapter's table, step by step, as a tree: which texts
// grow, which have ended, which are dropped.

import { searchBeams } from "../engine/beam.js";
import { button, choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { END, logProbabilities, START, tableModel, textOf, TOKENS } from "./beam/table.js";
import { beamTree } from "./beam/tree.js";

/** @typedef {import("../engine/beam.js").Search} Search */
/** @typedef {import("./beam/tree.js").Candidate} Candidate */

const PACE = 1400; // ms for a step
const FATES = { grows: "grows on", ended: "has ended", dropped: "dropped" };

class BeamPiece extends LivePiece {
  static style = new URL("beam.css", import.meta.url);

  /** @type {Search[]} */
  search = [];
  step = 2;
  #timer = 0;

  build() {
    const on = () => {
      this.#stop();
      this.step = Math.min(this.step, this.#find());
      this.#changed();
    };
    this.width = slider({ label: "beam width K", min: 1, max: 4, value: 2, on });
    this.first = slider({ label: "P(a) at the start", min: 0.05, max: 0.95, step: 0.05,
      value: 0.6, on, format: (value) => fixed(value) });
    this.length = slider({ label: "tokens at most", min: 2, max: 5, value: 4, on });
    this.penalty = choice({ label: "length penalty α", value: "0", on,
      options: ["0", "0.6", "1"].map((value) => ({ value, label: value })) });
    this.back = button("Back", () => this.#go(this.step - 1));
    this.next = button("Next step", () => this.#go(this.step + 1));
    this.play = button("Play", () => (this.#timer ? this.#stop() : this.#start()));
    this.tree = beamTree(() => this.#draw());
    this.sentence = h("p", { class: "live-sentence" });
    this.result = h("p", { class: "live-sentence beam-result" });
    this.table = numbers({ caption: "The candidates of each step" });
    this.#find();
    const sliders = [this.width, this.first, this.length];
    return [
      hint("Search with one beam, which is greedy, and then with two: which text does the " +
        "narrow search never see?"),
      h("div", { class: "live-sliders" }, ...sliders.map(({ element }) => element),
        this.penalty.element),
      h("div", { class: "live-row player" }, this.back, this.next, this.play),
      this.tree.element,
      h("ul", { class: "beam-key", "aria-hidden": "true" },
        ...Object.entries(FATES).map(([fate, text]) =>
          h("li", {}, h("span", { class: `key ${fate}` }), text))),
      this.sentence, this.result, this.table.element,
    ];
  }

  disconnectedCallback() {
    this.#stop();
  }

  update() {
    this.#draw();
  }

  /** Search anew; returns the number of steps. */
  #find() {
    this.search = [...searchBeams(tableModel(this.#table()), [], {
      numBeams: this.width?.value ?? 2,
      maxLen: this.length?.value ?? 4,
      lengthPenalty: Number(this.penalty?.value ?? 0),
    })];
    return this.search.length;
  }

  #table() {
    return logProbabilities(this.first?.value ?? 0.6);
  }

  /** @param {number} step */
  #go(step) {
    this.#stop();
    this.step = step;
    this.#changed();
  }

  #start() {
    if (this.step === this.search.length) this.step = 0;
    this.#timer = window.setInterval(() => this.#tick(), PACE);
    this.#tick();
  }

  #tick() {
    this.step += 1;
    if (this.step === this.search.length) this.#stop();
    this.#changed();
  }

  #stop() {
    window.clearInterval(this.#timer);
    this.#timer = 0;
    if (this.play) this.play.textContent = "Play";
  }

  #changed() {
    this.#draw();
    this.say(`${this.sentence?.textContent} ${this.result?.textContent}`);
  }

  /** The candidates of each step, and what becomes of them. @returns {Candidate[][]} */
  #candidates() {
    const K = this.width?.value ?? 2;
    const last = this.length?.value ?? 4;
    return this.search.slice(0, this.step).map(({ candidates, live }, i) => {
      const looked = candidates.filter(({ sum }) => sum > -Infinity);
      const others = this.#expand(i).filter(({ sum, ids }) => sum > -Infinity &&
        !looked.some((beam) => textOf(beam.ids) === textOf(ids)));
      return [...looked, ...others.sort((a, b) => b.sum - a.sum)].map((beam, place) => {
        const ended = place < K && (beam.ended || i + 1 === last);
        return { beam, fate: ended ? "ended" : live.includes(beam) ? "grows" : "dropped" };
      });
    });
  }

  /** All beams before a step, each with every token. @param {number} step from 0 */
  #expand(step) {
    const before = step ? this.search[step - 1].live : [{ ids: [], sum: 0 }];
    return before.flatMap(({ ids, sum }, parent) => TOKENS.map((_, id) => {
      const total = sum + this.#table()[ids.at(-1) ?? START][id];
      return { ids: [...ids, id], sum: total, score: total, parent, ended: id === END };
    }));
  }

  #draw() {
    const steps = this.#candidates();
    this.tree?.update(steps, Math.max(3, this.search.length));
    const { search, step, back, next, play } = this;
    if (back && next && play) {
      back.disabled = step === 1;
      next.disabled = step === search.length;
      play.textContent = this.#timer ? "Pause" : "Play";
    }
    if (this.sentence) this.sentence.textContent = this.#told(steps[step - 1]);
    const over = step === search.length;
    if (this.result) {
      const best = search[step - 1].ended.filter(({ score }) => score > -Infinity)
        .map(({ ids, score }) => `${textOf(ids)} (${fixed(score, 3)})`);
      this.result.textContent = over ? `The search stops. The best, with their scores: ${best.join(", ")}.` : "";
    }
    this.table?.update({
      columns: ["text", "step", "log-probability", "probability", "what becomes of it"],
      rows: steps.flatMap((candidates, i) => candidates.map(({ beam, fate }) => [
        textOf(beam.ids), i + 1, fixed(beam.sum, 3), fixed(Math.exp(beam.sum), 3), FATES[fate]])),
    });
  }

  /** @param {Candidate[]} candidates of this step */
  #told(candidates) {
    const with_ = (/** @type {string} */ fate) => candidates.filter((each) => each.fate === fate)
      .map(({ beam }) => textOf(beam.ids)).join(", ");
    const said = Object.entries({ grows: "On with", ended: "Ended", dropped: "Dropped" })
      .map(([fate, text]) => with_(fate) && `${text}: ${with_(fate)}`).filter(Boolean);
    return `Step ${this.step}. ${said.join(" · ")}`;
  }
}

customElements.define("live-beam", BeamPiece);
