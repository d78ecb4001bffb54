// <live-window>: what the last token depends on, layer by layer, through sliding windows,
// and for how many keys the layers' caches take room. It begins with the chapter's model.

import { reached, roomFor, windowsOf } from "../formulas/window.js";
import { slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { drawing } from "./window/drawing.js";

const TOKENS = 30;
const LAST = TOKENS - 1;

class LiveWindow extends LivePiece {
  static style = new URL("window.css", import.meta.url);

  sentence = h("p", { class: "live-sentence" });
  table = numbers({ caption: "What the last token depends on" });

  build() {
    const on = () => {
      this.update();
      this.say(this.sentence.textContent);
    };
    this.sliders = {
      window: slider({ label: "window W", min: 1, max: TOKENS, value: 4, on }),
      layers: slider({ label: "layers N", min: 1, max: 8, value: 4, on }),
      every: slider({ label: "global layers", min: 0, max: 6, value: 0, on,
        format: (every) => (every ? `every ${ordinal(every)}` : "none") }),
      first: slider({ label: "first tokens kept", min: 0, max: 4, value: 0, on }),
    };
    this.drawing = drawing(() => this.update());
    return [
      hint(h("b", {}, "Widen the window"), ", add layers, or let one layer in four be global: " +
        "what does the last token depend on, and how many keys are kept for it?"),
      h("div", { class: "live-sliders" },
        ...Object.values(this.sliders).map(({ element }) => element)),
      this.drawing.element,
      h("p", { class: "live-note" }, "Each row: what a layer reads for the last token; the " +
        "lowest is the input. ", h("b", { class: "window-global", text: "Orange" }),
        ": a global layer."),
      this.sentence, this.table.element,
    ];
  }

  update() {
    if (!this.sliders) return;
    const [W, N, every, first] = Object.values(this.sliders).map(({ value }) => value);
    const windows = windowsOf(N, W, every);
    const stages = reached(TOKENS, LAST, windows, first);
    const rooms = windows.map((window) => roomFor(TOKENS, window));
    this.drawing?.update(stages, windows);
    const counts = stages.map((stage) => stage.filter(Boolean).length);
    const bound = ` N (W − 1) + 1 = ${N * (W - 1) + 1}.`;
    this.sentence.textContent = `The last token depends on ${counts[N]} of ${TOKENS} tokens.` +
      `${first || windows.includes(null) ? "" : bound} ` +
      `${N === 1 ? "The cache of the layer takes" : `The caches of ${N} layers take`} room for ` +
      `${rooms.reduce((a, b) => a + b)} of ${N * TOKENS} keys` +
      `${first ? ", and the first tokens besides" : ""}.`;
    this.table.update({
      columns: ["read by", "window", "tokens", "which"],
      rows: counts.slice(1).map((count, i) => {
        const window = windows[N - 1 - i];
        return [`layer ${N - i}`, window === null ? "global" : window, count, listed(stages[i + 1])];
      }),
    });
  }
}

/** @param {number} n */
function ordinal(n) {
  return n === 1 ? "layer" : `${n}${["nd", "rd"][n - 2] ?? "th"}`;
}

/**
 * Numbers as ranges: 0, 20–29.
 * @param {boolean[]} stage
 */
function listed(stage) {
  /** @type {number[][]} */
  const ranges = [];
  stage.forEach((there, place) => {
    const last = ranges[ranges.length - 1];
    if (there && last?.[1] === place - 1) last[1] = place;
    else if (there) ranges.push([place, place]);
  });
  return ranges.map(([from, to]) => (from === to ? from : `${from}–${to}`)).join(", ");
}

customElements.define("live-window", LiveWindow);
