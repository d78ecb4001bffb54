// All layers as a row of cells: how each attends, and below whether it has experts.

import { kept } from "../../formulas/config.js";
import { h, svg } from "../../ui/dom.js";

/** @typedef {import("../../formulas/config.js").Reading} Reading */
/** @typedef {import("../../formulas/config.js").Layer} Layer */

const SHARED = "keys of an earlier layer";
const [NARROW, WIDE, HIGH] = [7, 16, 22];

/**
 * Say how a layer is made, apart from sizes.
 * @param {Layer} layer
 * @param {string} positions of the model
 */
export function kindName({ attends, attention, network }, positions) {
  const lost = positions === "rotary" && attention.kind === "heads" && !attention.rotates;
  const shares = attention.kind === "heads" && attention.sizes.shared;
  return [attends, shares && SHARED, lost && "no positions", network.kind === "experts" && "experts"]
    .filter(Boolean).join(", ");
}

/**
 * Which colour a layer has.
 * @param {Layer} layer
 */
function colour({ attention, window }) {
  return attention.kind === "heads" ? (window === null ? "heads" : "window") : attention.kind;
}

/**
 * Draw the layers, in as many rows as they need.
 * @param {{element: SVGSVGElement, width: number, height: number}} chart
 * @param {Layer[]} layers
 * @param {Layer} chosen of the kind that is drawn
 */
export function drawLayers(chart, layers, chosen) {
  const wide = Math.max(NARROW, Math.min(WIDE, Math.floor(chart.width / layers.length)));
  const inRow = Math.max(1, Math.floor(chart.width / wide));
  const high = layers.some(({ network }) => network.kind === "experts") ? HIGH + 9 : HIGH;
  chart.height = Math.ceil(layers.length / inRow) * (high + 6);
  const like = JSON.stringify(chosen);
  chart.element.replaceChildren(...layers.flatMap((layer, i) => {
    const x = (i % inRow) * wide, y = Math.floor(i / inRow) * (high + 6) + 1;
    const size = { x: x + 0.5, width: wide - 1.5, rx: 1.5 };
    const faint = JSON.stringify(layer) === like ? "" : " faint";
    const cells = [svg("rect", { ...size, class: `config-layer ${colour(layer)}${faint}`, y, height: HIGH - 2 })];
    if (layer.network.kind === "experts") {
      cells.push(svg("rect", { ...size, class: `config-layer experts${faint}`, y: y + HIGH, height: 7 }));
    }
    return cells;
  }));
}

/**
 * What the colours mean: each kind of layer with its count.
 * @param {Reading} reading
 */
export function legend({ kinds, around }) {
  return kinds.map(({ layer, count }) => h("span", {},
    h("i", { class: `config-swatch ${colour(layer)}`, "aria-hidden": "true" }),
    `${count} × ${kindName(layer, around.positions)}`));
}

/**
 * What layers that attend alike keep of a text.
 * @param {Reading} reading
 * @param {number} length
 * @param {number} bytes of a number
 */
export function cacheRows({ kinds }, length, bytes) {
  /** @type {Map<string, {name: string, layers: number, bytes: number} & ReturnType<typeof kept>>} */
  const found = new Map();
  for (const { layer, count } of kinds) {
    const one = kept(layer, length, bytes), { attention } = layer;
    const shares = attention.kind === "heads" && attention.sizes.shared;
    const key = JSON.stringify([layer.attends, one]);
    const layers = (found.get(key)?.layers ?? 0) + count;
    found.set(key, { ...one, name: shares ? `${layer.attends}, ${SHARED}` : layer.attends, layers, bytes: layers * one.bytes });
  }
  return [...found.values()];
}
