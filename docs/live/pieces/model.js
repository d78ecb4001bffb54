// The live model: a Transformer that the reader can open, run and break.
//
// The state is one object (explorer/state.js); each change runs the model where it must
// and draws all parts anew. The parts do not know each other.

import { breaks } from "../explorer/breaks.js";
import { compare } from "../explorer/compare.js";
import { entry } from "../explorer/entry.js";
import { headOf, headView } from "../explorer/head-view.js";
import { maps } from "../explorer/maps.js";
import { pathView } from "../explorer/path-view.js";
import { probabilities } from "../explorer/probabilities.js";
import { Runs, crossHead, loadModel } from "../explorer/runs.js";
import { copyLink } from "../explorer/share.js";
import { stage } from "../explorer/stage.js";
import { TRAINED, isState, read, write } from "../explorer/state.js";
import { LEGEND } from "../explorer/tokens.js";
import { STOPS, stateAt, tour } from "../explorer/tour.js";
import { transport } from "../explorer/transport.js";
import { h, set } from "../ui/dom.js";
import { LivePiece } from "../ui/piece.js";

/** @typedef {import("../explorer/state.js").State} State */
/** @typedef {import("../explorer/runs.js").View} View */

export class LiveModel extends LivePiece {
  static style = new URL("model.css", import.meta.url);

  #runs = new Runs();
  /** @type {State} */
  #state = read("", { encoderLayers: 0, decoderLayers: 0, heads: 0 });
  /** @type {View | null} */
  #view = null;
  /** @type {{update: (view: View) => void}[]} */
  #parts = [];
  /** Counts the changes: only the newest is drawn. */
  #turn = 0;
  #saving = 0;
  #shown = Promise.resolve();

  async prepare() {
    const quotes = fetch(new URL("../source.json", import.meta.url));
    this.quotes = await quotes.then((found) => found.json()).catch(() => ({}));
    this.model = await loadModel(TRAINED).catch((error) => {
      this.error = error;
      return null;
    });
  }

  build() {
    this.message = h("div", { class: "model-message", role: "alert", hidden: true });
    this.body = h("div", { class: "model-body" });
    if (this.model) this.body.append(...this.#open(this.model));
    else this.#failed(this.error);
    return [this.message, this.body];
  }

  async update() {
    if (this.model) await this.#show();
  }

  /**
   * Build the parts for a model that is there.
   * @param {import("../engine/transformer.js").Transformer} model
   */
  #open(model) {
    const { numEncoderLayers, numDecoderLayers, numHeads, dModel } = model.config;
    const sizes = { encoderLayers: numEncoderLayers, decoderLayers: numDecoderLayers, heads: numHeads };
    this.#state = read(isState(location.hash) ? location.hash : "", sizes, stateAt);
    window.addEventListener("hashchange", () => {
      if (isState(location.hash)) this.#change(read(location.hash, sizes, stateAt));
    });
    new MutationObserver(() => this.#draw()).observe(document.body, {
      attributes: true, attributeFilter: ["data-md-color-scheme"],
    });

    const toggle = (/** @type {string[]} */ heads) => {
      const { off } = this.#state;
      const all = heads.every((head) => off.includes(head));
      const kept = off.filter((head) => !heads.includes(head));
      this.#change({ off: all ? kept : [...kept, ...heads].sort() });
    };
    const text = entry({
      text: this.#state.text,
      onText: (typed, how) => {
        play.stop();
        this.#change({ text: typed, step: null });
        if (how === "example" && !this.still) void this.#shown.then(() => play.run(0));
      },
    });
    const picture = stage({
      onSource: (s) => this.#change({ token: `source:${s}` }),
      onWritten: (t) => this.#change({ token: `target:${t}` }),
    });
    const play = transport({
      count: () => this.#view?.count ?? 0,
      total: () => this.#view?.shown.steps.length ?? 0,
      go: (count) => {
        const all = this.#view?.shown.steps.length ?? 0;
        this.#change({ step: count >= all ? null : count, token: `target:${Math.max(0, count - 1)}` });
      },
    });
    const bars = probabilities();
    const board = compare();
    const controls = breaks({ sizes, headDim: dModel / numHeads, change: (patch) => this.#change(patch) });
    const all = maps({ sizes, pick: (head) => this.#change({ head }), toggle });
    const one = headView({
      pickRow: ({ kind }, row) =>
        this.#change({ token: `${kind === "encoder" ? "source" : "target"}:${row}` }),
      toggle,
    });
    const path = pathView({
      quotes: this.quotes,
      open: (id) => this.#change({ stage: id }),
      move: (by) => {
        const [side] = this.#state.token.split(":");
        const at = side === "source" ? this.#view?.sourceRow : this.#view?.row;
        this.#change({ token: `${side}:${(at ?? 0) + by}` });
      },
      switchSide: () => {
        const inSource = this.#state.token.startsWith("source");
        this.#change({
          token: inSource ? `target:${this.#view?.row ?? 0}` : `source:${this.#view?.sourceRow ?? 0}`,
          stage: "embedding",
        });
      },
    });
    const guide = tour({ go: (at) => this.#change(at ? stateAt(at) : { tour: 0 }), leave: () => begin.focus({ preventScroll: true }) });
    const begin = h("button", {
      type: "button", class: "live-button tour-begin",
      text: `Take the tour: ${STOPS.length} steps`, onclick: () => {
        play.stop();
        this.#change(stateAt(1));
        void this.#shown.then(() => guide.next.focus({ preventScroll: true }));
      },
    });
    const share = copyLink(() => this.#save(), (text) => this.say(text));
    let led = "";
    this.#parts = [
      { update: (view) => (text.show(view.state.text), text.update(view.reading)) },
      { update: (view) => picture.update(scene(view)) },
      play, bars, board, controls, all, one, path,
      { update: (view) => {
        void guide.update(view, (patch) => this.#runs.view({ ...view.state, ...patch }));
        const { tour: at, see } = view.state, place = STOPS[at - 1]?.target ?? see;
        if (place && led !== `${at} ${place}`) void this.#lead(place);
        for (const box of this.querySelectorAll(".toured")) box.classList.remove("toured");
        if (place) this.querySelector(`.${place}`)?.classList.add("toured");
        led = `${at} ${place}`;
      } },
    ];
    return [
      h("div", { class: "model-top" }, text.element, text.examples, h("div", { class: "model-moves" }, begin, share)),
      h("div", { class: "model-desk" },
        h("section", { class: "stage-box" }, picture.element, play.element,
          h("p", { class: "model-legend", text: `${LEGEND}. The number below a token: its probability in %.` }),
          bars.element, controls.choosing),
        h("div", { class: "model-break" }, board.element, controls.element)),
      h("div", { class: "model-heads" }, h("section", { class: "maps-box" },
        h("h2", { class: "live-title", text: "All heads" }), all.element), one.element),
      path.element,
      guide.element,
    ];
  }

  /** @param {string} target */
  async #lead(target) {
    await this.ready; // hidden until then
    this.querySelector(`.${target}`)?.scrollIntoView({ block: "start", behavior: this.still ? "auto" : "smooth" });
  }

  /** @param {Partial<State>} patch */
  #change(patch) {
    this.#state = { ...this.#state, see: "", ...patch };
    window.clearTimeout(this.#saving);
    this.#saving = window.setTimeout(() => this.#save(), 300);
    this.#shown = this.#show();
  }

  #save() {
    const { pathname, search } = location;
    history.replaceState(history.state, "", `${pathname}${search}${write(this.#state, stateAt)}`);
  }

  async #show() {
    const turn = (this.#turn += 1);
    this.dataset.asked = String(turn);
    try {
      const view = await this.#runs.view(this.#state);
      if (turn !== this.#turn) return;
      this.#view = view;
      set(/** @type {HTMLElement} */ (this.message), { hidden: true });
      this.#draw();
      const { shown, broken, count } = view;
      this.say(`${broken ? "Now it writes" : "It writes"} ${count < shown.tokens.length
        ? shown.tokens.slice(0, count).map(({ name }) => name).join(" ") : shown.text || "nothing"}.`);
      this.dataset.turn = String(turn);
    } catch (error) {
      if (turn === this.#turn) this.#failed(/** @type {Error} */ (error));
    }
  }

  #draw() {
    if (this.#view) for (const part of this.#parts) part.update(this.#view);
  }

  /** @param {Error} error */
  #failed(error) {
    const retry = h("button", { type: "button", class: "live-button", text: "Try again", onclick: async () => {
      try {
        this.model ??= await loadModel(TRAINED);
        this.closest("figure")?.classList.remove("live-broken");
        if (!this.#parts.length) this.body?.append(...this.#open(this.model));
        await this.#show();
      } catch (again) {
        this.#failed(/** @type {Error} */ (again));
      }
    } });
    const back = this.model && h("button", { type: "button", class: "live-button", text: "Go on with the first model",
      onclick: () => this.#change({ model: TRAINED }) });
    const message = /** @type {HTMLElement} */ (this.message);
    message.replaceChildren(h("p", { text: `The model could not be loaded. ${error.message}`.trim() }), retry, ...(back ? [back] : []));
    set(message, { hidden: false });
    if (!this.model) this.closest("figure")?.classList.add("live-broken");
  }
}

/**
 * What the picture of writing shows of a view.
 * @param {View} view
 * @returns {import("../explorer/stage.js").Scene}
 */
export function scene(view) {
  const { record, source, shown, count, row, sourceRow, state } = view;
  const [name, at] = crossHead(state.head);
  const head = headOf(view);
  const weights = record?.attention(name).weights[at];
  return {
    source,
    written: shown.tokens.slice(0, count),
    chosen: shown.chosen,
    looks: (t) => weights?.row(t) ?? [],
    row: count ? row : null,
    sourceRow: state.token.startsWith("source") || head?.kind === "encoder" ? sourceRow : -1,
    arcs: !head || head.kind === "cross" ? null
      : { kind: head.kind === "encoder" ? "encoder" : "decoder", weights: head.weights.row(head.row) },
  };
}

customElements.define("live-model", LiveModel);
