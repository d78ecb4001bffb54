// <live-distance>: what ALiBi and T5 make of the distance of a key from its query. It
// begins with T5's 32 buckets, as the chapter's picture.

import { alibiSlopes, bucketStarts, relativeBucket } from "../formulas/relative.js";
import { choice, slider, toggle } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { hint, LivePiece } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { plot } from "./distance/plot.js";

const REACH = 150; // places, to both sides
const BUCKETS = [4, 8, 16, 32, 64];
const FURTHEST = [64, 128, 256];

class LiveDistance extends LivePiece {
  static style = new URL("distance.css", import.meta.url);

  kind = "T5";
  sentence = h("p", { class: "live-sentence" });
  table = numbers({ caption: "By the distance" });

  build() {
    const on = () => this.#changed();
    const kinds = choice({
      label: "bias", value: this.kind,
      options: ["T5", "ALiBi"].map((value) => ({ value, label: value })),
      on: (value) => {
        this.kind = value;
        on();
      },
    });
    this.both = toggle({ label: "both directions", value: false, on });
    const listed = (/** @type {string} */ label, /** @type {number[]} */ values,
      /** @type {number} */ value) => slider({ label, min: 0, max: values.length - 1, on,
      value: values.indexOf(value), format: (place) => String(values[place]) });
    this.buckets = listed("buckets N", BUCKETS, 32);
    this.furthest = listed("furthest M", FURTHEST, 128);
    this.heads = slider({ label: "heads H", min: 1, max: 16, value: 8, on });
    this.head = slider({ label: "head", min: 1, max: 8, value: 4, on });
    this.distance = slider({ label: "distance", min: -REACH, max: REACH, value: 20, on,
      format: (value) => fixed(value, 0) });
    this.plot = plot(() => this.update());
    return [
      hint(h("b", {}, "Move the distance"), ": from where on does T5 not tell two keys apart? " +
        "And what does a steep head of ALiBi still see there?"),
      h("div", { class: "live-row" }, kinds.element, this.both.element),
      h("div", { class: "live-sliders" }, ...[this.distance, this.buckets, this.furthest,
        this.heads, this.head].map(({ element }) => element)),
      this.plot.element, this.sentence, this.table.element,
    ];
  }

  #changed() {
    this.update();
    this.say(this.sentence.textContent);
  }

  update() {
    const { both, buckets, furthest, heads, head, distance } = this;
    if (!both || !buckets || !furthest || !heads || !head || !distance) return;
    const t5 = this.kind === "T5";
    for (const each of [both, buckets, furthest]) each.element.hidden = !t5;
    for (const each of [heads, head]) each.element.hidden = t5;
    head.limit(1, heads.value);
    const shown = t5
      ? this.#buckets(BUCKETS[buckets.value], FURTHEST[furthest.value], both.value)
      : this.#slope(heads.value, head.value);
    const places = Array.from({ length: 2 * REACH + 1 }, (_, i) => i - REACH);
    const values = places.map(shown.value);
    this.plot?.update({ values, reach: REACH, now: distance.value, title: shown.title,
      yTicks: shown.yTicks });
    this.sentence.textContent = shown.told(distance.value, (bucket) => {
      const its = places.filter((_, i) => values[i] === bucket);
      return [its[0], its[its.length - 1]];
    });
    this.table.update({
      columns: ["distance", shown.title],
      rows: places.map((at, i) => [fixed(at, 0), fixed(values[i], t5 ? 0 : 4)]),
    });
  }

  /**
   * @param {number} N buckets in all
   * @param {number} M
   * @param {boolean} both
   */
  #buckets(N, M, both) {
    const starts = bucketStarts(both ? N / 2 : N, M);
    const value = (/** @type {number} */ at) => relativeBucket(at, starts, both);
    return {
      value, title: "bucket",
      yTicks: [0, N / 2, N - 1].map((tick) => ({ value: tick, label: String(tick) })),
      told: (/** @type {number} */ at, /** @type {(bucket: number) => number[]} */ others) => {
        const [from, to] = others(value(at));
        const shared = from === to ? "It has that bucket for itself."
          : `It shares it with all distances from ${fixed(from, 0)} to ${fixed(to, 0)}` +
            `${Math.max(Math.abs(from), Math.abs(to)) === REACH ? " and beyond" : ""}.`;
        return `Distance ${fixed(at, 0)}: bucket ${value(at)} of ${N}. ${shared}`;
      },
    };
  }

  /**
   * @param {number} H
   * @param {number} head from 1
   */
  #slope(H, head) {
    const slope = alibiSlopes(H)[head - 1];
    const value = (/** @type {number} */ at) => Math.exp(-slope * Math.abs(at));
    return {
      value, title: "factor of the weight",
      yTicks: [0, 0.5, 1].map((tick) => ({ value: tick, label: String(tick) })),
      told: (/** @type {number} */ at) => `Head ${head} of ${H} has the slope ` +
        `1 / ${fixed(1 / slope, 1)}. At distance ${fixed(at, 0)} it adds ` +
        `${fixed(-slope * Math.abs(at), 3)}, which multiplies the weight by ` +
        `${fixed(value(at), 4)}. Half the weight is left after ${fixed(Math.LN2 / slope, 1)} places.`,
    };
  }
}

customElements.define("live-distance", LiveDistance);
