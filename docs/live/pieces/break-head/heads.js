// The second click: all heads as small maps, of which one is bet on. They are radio
// buttons, so that the arrow keys move among them.

import { KINDS, drawMap, spoken } from "../../explorer/maps.js";
import { attentionNames } from "../../explorer/state.js";
import { h, set, uniqueId } from "../../ui/dom.js";

/** @typedef {import("../../explorer/runs.js").View} View */
/** @typedef {import("../../explorer/state.js").Sizes} Sizes */

/**
 * Make the heads: a row for each kind of attention, its layers side by side.
 * @param {{sizes: Sizes, on: (head: string) => void}} given
 */
export function heads({ sizes, on }) {
  const name = uniqueId("bet");
  /** @type {Map<string, {label: HTMLElement, input: HTMLInputElement, canvas: HTMLCanvasElement}>} */
  const all = new Map();
  const rows = KINDS.map((kind) => h("div", { class: "bet-kind" },
    h("span", { class: "bet-kind-name", "aria-hidden": "true", text: kind.title }),
    ...attentionNames(sizes)
      .filter((each) => each.startsWith(kind.in) && each.endsWith(`.${kind.of}`))
      .map((each) => h("div", { class: "bet-layer" },
        ...Array.from({ length: sizes.heads }, (_, at) => one(`${each}:${at}`))))));

  /** @param {string} head */
  function one(head) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const input = h("input", {
      type: "radio", name, value: head, "aria-label": spoken(head), onchange: () => on(head),
    });
    const label = h("label", { class: "bet-head", title: spoken(head) }, input, canvas,
      h("span", { class: "bet-mark", "aria-hidden": "true", text: "≠" }));
    all.set(head, { label, input, canvas });
    return label;
  }

  return {
    element: h("fieldset", { class: "bet-heads" },
      h("legend", { text: `2. Which of the ${all.size} heads does this date need?` }), ...rows),
    names: [...all.keys()],
    /** @param {View} view of the whole model @param {string} picked */
    update({ record }, picked) {
      for (const [head, { canvas, input }] of all) {
        const [attention, at] = head.split(":");
        drawMap(canvas, record?.attention(attention).weights[Number(at)] ?? null);
        input.checked = head === picked;
      }
    },
    /** Mark the heads that break the date. @param {ReadonlySet<string>} breaking */
    mark(breaking) {
      for (const [head, { label, input }] of all) {
        label.classList.toggle("breaks-it", breaking.has(head));
        set(input, { "aria-label": `${spoken(head)}${breaking.has(head) ? ", breaks this date" : ""}` });
      }
    },
  };
}
