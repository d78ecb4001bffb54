// <live-speculation>: model and draft disagree about three tokens, and the rule still gives
// the model's probabilities. It has the numbers of the chapter's smallest case.

import { acceptance, afterRejection, outcome, tokensAForward } from "../formulas/speculation.js";
import { slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed, percent } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { bars } from "./speculation/bars.js";

const WANTED = [5, 3, 2]; // tenths, of the model
const PROPOSED = [2, 6, 2]; // of the draft
const NAMES = WANTED.map((_, x) => `token ${x + 1}`);
const MOST = 10;

/** Parts of their sum. @param {number[]} parts */
function probabilities(parts) {
  const sum = parts.reduce((a, b) => a + b);
  return parts.map((part) => part / sum);
}

class LiveSpeculation extends LivePiece {
  static style = new URL("speculation.css", import.meta.url);

  sentence = h("p", { class: "live-sentence" });
  speed = h("p", { class: "live-sentence" });
  table = numbers({ caption: "What becomes of each token" });

  build() {
    const on = () => {
      this.update();
      this.say(`${this.sentence.textContent} ${this.speed.textContent}`);
    };
    const parts = (/** @type {string} */ who, /** @type {number[]} */ begin) =>
      begin.map((value, x) => slider({ label: `${who}, ${NAMES[x]}`, on, value, max: MOST,
        // One part at least: the parts of nothing are none.
        min: x === begin.length - 1 ? 1 : 0 }));
    this.p = parts("model", WANTED);
    this.q = parts("draft", PROPOSED);
    this.rule = toggle({ label: "replace from (p − q)₊", value: true, on });
    this.ahead = slider({ label: "tokens ahead, K", min: 1, max: 8, value: 4, on });
    this.cost = slider({ label: "a draft’s step, c", min: 0, max: 20, value: 2, on,
      format: (place) => fixed(place / 20, 2) });
    this.bars = bars(() => this.update());
    return [
      hint(h("b", {}, "Make the draft worse"), ": fewer of its proposals are kept, and the total " +
        "is still p. Then draw what replaces them from p itself."),
      h("div", { class: "live-sliders" },
        ...[...this.p, ...this.q].map(({ element }) => element)),
      this.rule.element, this.bars.element,
      h("p", { class: "live-note" }, "Of the total: ",
        h("b", { class: "speculation-kept", text: "proposed and kept" }), ", and ",
        h("b", { class: "speculation-replaced", text: "drawn after a rejection" }), "."),
      this.sentence,
      h("div", { class: "live-sliders" }, this.ahead.element, this.cost.element),
      this.speed, this.table.element,
    ];
  }

  update() {
    const parts = (/** @type {import("../ui/controls.js").Slider[] | undefined} */ of) =>
      probabilities((of ?? []).map(({ value }) => value));
    const [p, q] = [parts(this.p), parts(this.q)];
    const right = this.rule?.value ?? true;
    const { kept, replaced, rate } = outcome(p, q, right ? afterRejection(p, q) : p);
    const total = kept.map((each, x) => each + replaced[x]);
    this.bars?.update(NAMES.map((name, x) =>
      ({ name, p: p[x], q: q[x], kept: kept[x], replaced: replaced[x] })));
    const off = total.reduce((sum, each, x) => sum + Math.abs(each - p[x]), 0) / 2;
    this.sentence.textContent = `Of the draft’s proposals ${percent(rate)} are kept. In total ` +
      `${total.map((each) => fixed(each, 3)).join(", ")}; the model wants ` +
      `${p.map((each) => fixed(each, 3)).join(", ")}: ` +
      (off < 1e-12 ? "the same." : `wrong in ${percent(off, 1)} of the cases.`);
    const K = this.ahead?.value ?? 0;
    const c = (this.cost?.value ?? 0) / 20;
    const written = tokensAForward(rate, K);
    this.speed.textContent = `With as many kept at each place, a forward of the model writes ` +
      `${fixed(written)} tokens. With the draft’s steps that is ${fixed(written / (1 + c * K))} ` +
      "times as fast.";
    const accept = acceptance(p, q);
    this.table.update({
      columns: ["", "p", "q", "kept with", "proposed and kept", "after a rejection", "total"],
      rows: NAMES.map((name, x) => [name,
        ...[p[x], q[x], accept[x], kept[x], replaced[x], total[x]].map((each) => fixed(each, 3))]),
    });
  }
}

customElements.define("live-speculation", LiveSpeculation);
