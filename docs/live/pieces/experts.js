// <live-experts>: a router sends 64 tokens to 8 experts. A part that all tokens share makes
// it prefer the same experts; a bias for the choice evens that out, step by step.

import { balanced, expertCounts, loadBalance, route } from "../formulas/router.js";
import { choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed, percent } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { torchNormal } from "../ui/torch-random.js";
import { drawing } from "./experts/drawing.js";

const [TOKENS, EXPERTS] = [64, 8];
const SEED = 8;
const RATE = 0.01; // u, as in the chapter
const UNUSED = 0.01; // of the choices: less than this, as in the chapter

const drawn = Array.from(torchNormal(SEED, 16 + TOKENS * EXPERTS));
const common = drawn.slice(0, EXPERTS);

/**
 * The router's logits of all tokens.
 * @param {number} share how much of them is common to all
 */
function logitsOf(share) {
  return Array.from({ length: TOKENS }, (_, token) => common.map((part, expert) =>
    share * part + drawn[16 + token * EXPERTS + expert]));
}

class LiveExperts extends LivePiece {
  static style = new URL("experts.css", import.meta.url);

  sentence = h("p", { class: "live-sentence" });
  table = numbers({ caption: "Load and bias of each expert" });

  build() {
    const on = () => {
      this.update();
      this.say(this.sentence.textContent);
    };
    this.share = slider({ label: "common part", min: 0, max: 4, value: 4, on,
      format: (place) => fixed(place / 2, 1) });
    this.steps = slider({ label: "steps of the bias", min: 0, max: 100, step: 5, value: 0, on });
    this.k = choice({ label: "experts of a token", value: "2", on,
      options: ["1", "2"].map((value) => ({ value, label: value })) });
    this.drawing = drawing(() => this.update());
    return [
      hint("Without balance some experts get nothing, and learn nothing. ",
        h("b", {}, "Let the bias take steps"), ", or make the common part smaller."),
      h("div", { class: "live-row" }, this.share.element, this.steps.element, this.k.element),
      this.drawing.element, this.sentence,
      h("p", { class: "live-note", text: "Nothing is trained here: the logits are drawn at " +
        "random, a part for all tokens and a part of each. Each step moves an expert’s bias " +
        "by 0.01, up if it had less than the mean (dashed), and down if it had more." }),
      this.table.element,
    ];
  }

  update() {
    const k = Number(this.k?.value);
    const logits = logitsOf((this.share?.value ?? 0) / 2);
    const steps = this.steps?.value ?? 0;
    let bias = new Array(EXPERTS).fill(0);
    for (let step = 0; step < steps; step += 1) {
      bias = balanced(bias, expertCounts(route(logits, bias, k).chosen, EXPERTS), RATE);
    }
    const routing = route(logits, bias, k);
    const counts = expertCounts(routing.chosen, EXPERTS);
    const loads = counts.map((count) => count / (k * TOKENS));
    this.drawing?.update(routing.chosen, loads, 1 / k);
    const unused = loads.filter((load) => load < UNUSED).length;
    this.sentence.textContent = `${steps ? `After ${steps} steps` : "Without balance"} ` +
      `${unused} of ${EXPERTS} experts ${unused === 1 ? "is" : "are"} unused, with less than ` +
      `1 % of the choices, and the most used has ${percent(Math.max(...loads))}. 8 · Σ f P = ` +
      `${fixed(loadBalance(routing))}.`;
    this.table.update({
      columns: ["expert", "choices", "load", "bias", "mean score P"],
      rows: counts.map((count, e) => [e, count, percent(loads[e], 1), fixed(bias[e]),
        fixed(routing.scores.reduce((sum, of) => sum + of[e], 0) / TOKENS, 3)]),
    });
  }
}

customElements.define("live-experts", LiveExperts);
