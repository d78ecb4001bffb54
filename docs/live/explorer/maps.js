// Every head of the model as a small map: a row for each query, a column for each key.

import { RAMPS, between } from "../ui/colours.js";
import { h, set } from "../ui/dom.js";
import { attentionNames } from "./state.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./state.js").Sizes} Sizes */
/** @typedef {import("../engine/linear.js").Matrix} Matrix */

/** The kinds of attention, in the order in which they run. */
export const KINDS = [
  { in: "encoder", of: "attention", title: "Encoder self-attention" },
  { in: "decoder", of: "attention", title: "Masked self-attention" },
  { in: "decoder", of: "cross_attention", title: "Cross-attention" },
];

/**
 * Say which head it is, counted from 1: "cross-attention, layer 2, head 3".
 * @param {string} head
 */
export function spoken(head) {
  const [stack, , layer, rest] = head.split(".");
  const [of, at] = rest.split(":");
  const kind = KINDS.find((each) => each.in === stack && each.of === of)?.title ?? head;
  return `${kind}, layer ${Number(layer) + 1}${at === undefined ? "" : `, head ${Number(at) + 1}`}`;
}

/**
 * Make the maps.
 * @param {{sizes: Sizes, pick: (head: string) => void, toggle: (heads: string[]) => void}} given
 *   `toggle` switches heads off, or on again if all of them are off
 */
export function maps({ sizes, pick, toggle }) {
  /** @type {Map<string, {button: HTMLButtonElement, canvas: HTMLCanvasElement}>} */
  const all = new Map();
  /** @type {Map<string, HTMLButtonElement>} */
  const layers = new Map();
  const groups = KINDS.map((kind) => {
    const rows = attentionNames(sizes)
      .filter((name) => name.startsWith(kind.in) && name.endsWith(`.${kind.of}`))
      .map((name) => {
        const heads = [...Array(sizes.heads).keys()].map((at) => `${name}:${at}`);
        const whole = h("button", {
          type: "button", class: "maps-layer",
          onclick: () => toggle(heads),
        });
        layers.set(name, whole);
        return h("div", { class: "maps-row" },
          h("span", { class: "maps-name", text: `layer ${Number(name.split(".")[2]) + 1}` }),
          ...heads.map((head) => map(head)), whole);
      });
    return h("fieldset", { class: "maps-kind" }, h("legend", { text: kind.title }), ...rows);
  });
  const element = h("div", { class: "maps" }, ...groups);
  element.addEventListener("keydown", (event) => {
    const names = [...all.keys()];
    const at = names.findIndex((name) => all.get(name)?.button === document.activeElement);
    if (at < 0) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -sizes.heads, ArrowDown: sizes.heads }[event.key];
    if (event.key === "Delete" || event.key === "Backspace") toggle([names[at]]);
    else if (by && names[at + by]) {
      all.get(names[at + by])?.button.focus();
      pick(names[at + by]);
    } else return;
    event.preventDefault();
  });

  /** @param {string} head */
  function map(head) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const button = h("button", {
      type: "button", class: "maps-head", onclick: () => pick(head), "data-head": head,
    }, canvas);
    all.set(head, { button, canvas });
    return button;
  }

  return {
    element,
    /** @param {View} view */
    update({ state, record, count }) {
      for (const [head, { button, canvas }] of all) {
        const off = state.off.includes(head);
        const picked = head === state.head;
        const [name, at] = head.split(":");
        const weights = record?.attention(name).weights[Number(at)] ?? null;
        drawMap(canvas, count && weights ? weights : null);
        set(button, {
          "aria-pressed": picked ? "true" : "false",
          "aria-label": `${spoken(head)}${off ? ", switched off" : ""}`,
          title: `${spoken(head)}: Delete switches it ${off ? "on" : "off"}`,
          tabindex: picked ? 0 : -1,
        });
        button.classList.toggle("off", off);
      }
      for (const [name, button] of layers) {
        const off = [...Array(sizes.heads).keys()].every((at) => state.off.includes(`${name}:${at}`));
        const text = off ? "all on" : "all off";
        set(button, { text, "aria-label": `${text}: ${spoken(name)}` });
      }
    },
  };
}

/**
 * Draw weights, a pixel a number: 0 is the paper, 1 the full blue.
 * @param {HTMLCanvasElement} canvas
 * @param {Matrix | null} weights
 */
export function drawMap(canvas, weights) {
  canvas.width = weights?.cols ?? 1;
  canvas.height = weights?.rows ?? 1;
  const context = canvas.getContext("2d");
  if (!context || !weights) return;
  const ramp = RAMPS.blues[isDark() ? "dark" : "light"];
  for (let t = 0; t < weights.rows; t++) {
    weights.row(t).forEach((weight, s) => {
      context.fillStyle = between(ramp, weight);
      context.fillRect(s, t, 1, 1);
    });
  }
}

/** Whether the page is dark now. */
export function isDark() {
  return document.body.dataset.mdColorScheme === "slate";
}
