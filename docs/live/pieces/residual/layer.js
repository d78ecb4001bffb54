// A drawing of one layer: the residual stream, the branch with the part, the norm.

import { set, svg } from "../../ui/dom.js";

const STREAM = 68; // the height of the stream
const BRANCH = 22; // and of the branch
const [LEAVES, RETURNS] = [48, 270];

/** @returns {{element: SVGSVGElement, update: (kind: import("./kinds.js").Kind) => void}} */
export function layerDrawing() {
  const stream = svg("path", { class: "stream", d: `M${LEAVES} ${STREAM}H${RETURNS}` });
  const branch = svg("path", { class: "branch",
    d: `M${LEAVES} ${STREAM}V${BRANCH}H${RETURNS}V${STREAM}` });
  const plus = svg("g", { class: "plus" },
    svg("circle", { cx: RETURNS, cy: STREAM, r: 12 }),
    svg("text", { x: RETURNS, y: STREAM + 6, "text-anchor": "middle", text: "+" }));
  const before = box(66, BRANCH, 62, "norm");
  const after = box(296, STREAM, 62, "norm");
  const element = svg("svg", { class: "layer-drawing", viewBox: "0 0 400 92",
    "aria-hidden": "true" },
    svg("path", { class: "rail", d: `M20 ${STREAM}H${LEAVES}M${RETURNS} ${STREAM}H378` }),
    svg("path", { class: "arrow", d: `M376 ${STREAM - 8}L390 ${STREAM}L376 ${STREAM + 7}Z` }),
    stream, branch, plus, before, after, box(142, BRANCH, 112, "feed-forward"),
    svg("text", { x: 10, y: STREAM + 5, "text-anchor": "middle", text: "x" }));
  return {
    element,
    update(kind) {
      stream.classList.toggle("gone", !kind.residual);
      plus.classList.toggle("gone", !kind.residual);
      before.classList.toggle("gone", kind.norm !== "before");
      after.classList.toggle("gone", kind.norm !== "after");
      set(element, { "data-kind": kind.name });
    },
  };
}

/**
 * @param {number} x of its left side
 * @param {number} y of its middle
 * @param {number} width
 * @param {string} text
 */
function box(x, y, width, text) {
  return svg("g", { class: "box" },
    svg("rect", { x, y: y - 15, width, height: 30, rx: 5 }),
    svg("text", { x: x + width / 2, y: y + 5, "text-anchor": "middle", text }));
}
