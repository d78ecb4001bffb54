// <live-scaling>: what a step and a training cost on 1 to 1,024 GPUs, with the chapter's
// formula and its assumptions as sliders.

import { CONTEXT, efficiency, held, NETWORKS, stepTime, training } from "../formulas/scaling.js";
import { readable } from "../formulas/cache.js";
import { choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { grouped, percent } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { plot } from "./scaling/plot.js";
import { stepLanes } from "./scaling/step.js";
import { duration, few, large, milliseconds, short } from "./scaling/words.js";

const doubling = (/** @type {number} */ from, /** @type {number} */ to) =>
  Array.from({ length: Math.log2(to / from) + 1 }, (_, i) => from * 2 ** i);

/** What the sliders can be set to. */
const VALUES = {
  // GPT-2's four sizes, and two beyond
  parameters: [124_439_808, 354_823_168, 774_030_080, 1_557_611_200, 7e9, 70e9],
  gpus: doubling(1, 1024),
  weak: doubling(1024, 131_072), // tokens on each GPU
  strong: doubling(16_384, 8_388_608), // tokens in all
  between: [12.5e9, 25e9, 50e9, 100e9, 200e9, 400e9],
  data: [1, 5, 20, 50, 100, 200], // tokens to train on, for each parameter
};

class Scaling extends LivePiece {
  static style = new URL("scaling.css", import.meta.url);

  weak = true;

  build() {
    const on = () => this.#changed();
    const pick = (/** @type {string} */ label, /** @type {number[]} */ values,
      /** @type {number} */ value, /** @type {(value: number) => string} */ format = grouped) =>
      slider({ label, min: 0, max: values.length - 1, value: values.indexOf(value), on,
        format: (place) => format(values[place]) });
    this.mode = choice({
      label: "scaling", value: "weak",
      options: ["weak", "strong"].map((value) => ({ value, label: value })),
      on: (value) => {
        this.weak = value === "weak";
        on();
      },
    });
    this.bytes = choice({ label: "a gradient is sent as", value: "4", on,
      options: [{ value: "4", label: "float32" }, { value: "2", label: "16 bits" }] });
    this.sliders = {
      gpus: pick("GPUs n", VALUES.gpus, 64),
      parameters: pick("parameters P", VALUES.parameters, 1_557_611_200, short),
      weak: pick("tokens a GPU", VALUES.weak, 8192),
      strong: pick("tokens in all", VALUES.strong, 524_288),
      between: pick("network", VALUES.between, 12.5e9,
        (value) => `${value / 1e9} GB/s`),
      data: pick("tokens a parameter", VALUES.data, 20),
    };
    this.speed = slider({ label: "speed F", min: 50, max: 1000, step: 50, value: 400, on,
      format: (value) => `${grouped(value)} · 10¹²` });
    this.lanes = stepLanes(() => this.#draw());
    this.plot = plot(() => this.#draw());
    this.sentence = h("p", { class: "live-sentence" });
    this.cost = h("p", { class: "live-sentence" });
    this.table = numbers({ caption: "A step and a training, computed with these assumptions" });
    return [
      hint("Give each GPU more tokens, or the machines a faster network: from where on do the " +
        "GPUs wait no more?"),
      h("div", { class: "live-row" }, this.mode.element, this.bytes.element),
      h("div", { class: "live-sliders" },
        ...Object.values(this.sliders).map(({ element }) => element), this.speed.element),
      this.lanes.element, this.plot.element, this.sentence, this.cost,
      h("p", { class: "live-note", text: "Computed with the formula above, not measured. As " +
        "there: machines of 8 GPUs with 450 GB/s between them, 10 µs for each of 2 log₂ n " +
        "messages, sequences of 1,024 tokens." }),
      this.table.element,
    ];
  }

  update() {
    this.#draw();
  }

  #changed() {
    this.#draw();
    this.say(`${this.sentence?.textContent} ${this.cost?.textContent}`);
  }

  /** @param {keyof typeof VALUES} name */
  #value(name) {
    return VALUES[name][this.sliders?.[name].value ?? 0];
  }

  #draw() {
    if (!this.sliders || !this.speed || !this.bytes) return;
    const { weak } = this;
    this.sliders.weak.element.hidden = !weak;
    this.sliders.strong.element.hidden = weak;
    const tokens = this.#value(weak ? "weak" : "strong");
    const most = weak ? 1024 : tokens / CONTEXT; // a sequence for each GPU
    const counts = VALUES.gpus.filter((n) => n <= most);
    this.sliders.gpus.limit(0, counts.length - 1);
    const n = this.#value("gpus");
    const assumed = {
      parameters: this.#value("parameters"), speed: this.speed.value * 1e12,
      bytes: Number(this.bytes.value), between: this.#value("between"),
    };
    const time = stepTime(assumed, n, weak ? tokens : tokens / n);
    this.lanes?.update(time);
    const line = (/** @type {number} */ between) =>
      counts.map((count) => efficiency({ ...assumed, between }, count, tokens, weak));
    const others = Object.entries(NETWORKS).filter(([, between]) => between !== assumed.between)
      .map(([name, between], i) => ({ name, line: line(between),
        at: i ? Math.min(5, counts.length - 1) : Math.max(0, counts.length - 2) }));
    const own = line(assumed.between);
    this.plot?.update(counts, own, others, counts.indexOf(n));
    this.#tell(n, time, own[counts.indexOf(n)], assumed.parameters);
    const data = this.#value("data") * assumed.parameters;
    const all = counts.map((count) => training(assumed, count, tokens, weak, data));
    const { hours, gpuHours, steps } = all[counts.indexOf(n)];
    if (this.cost) {
      this.cost.textContent = `A training on ${large(data)} tokens takes ${grouped(steps)} steps, ` +
        `${duration(hours)}, ${few(gpuHours)} GPU hours. One GPU alone would take ` +
        `${duration(all[0].hours)}, ${few(all[0].gpuHours)} GPU hours.`;
    }
    this.table?.update({
      columns: ["GPUs", "one step", "efficiency", "training", "GPU hours"],
      rows: counts.map((count, i) => [grouped(count),
        milliseconds(stepTime(assumed, count, weak ? tokens : tokens / count).total),
        percent(own[i]), duration(all[i].hours), few(all[i].gpuHours)]),
    });
  }

  /**
   * @param {number} n
   * @param {ReturnType<typeof stepTime>} time
   * @param {number} part the efficiency
   * @param {number} parameters
   */
  #tell(n, time, part, parameters) {
    if (!this.sentence) return;
    const bytes = held(parameters, n);
    const gpus = n === 1 ? "One GPU" : `${grouped(n)} GPUs`;
    const waits = time.waiting > 0
      ? `In each step of ${milliseconds(time.total)} they wait ${milliseconds(time.waiting)} for ` +
        "the network."
      : `A step takes ${milliseconds(time.total)}, and nobody waits for the network.`;
    this.sentence.textContent = `${gpus}: efficiency ${percent(part)}. ${waits} Each holds ` +
      `${readable(bytes.ddp)} with DDP or ${readable(bytes.fsdp)} with FSDP, and activations.`;
  }
}

customElements.define("live-scaling", Scaling);
