// Two layers of attention as a graph: from the tokens below to the queries above.

import { set, svg } from "../../ui/dom.js";

/** @typedef {import("../../engine/masks.js").Mask} Mask */

const [APART, LEFT] = [33, 20];
const ROWS = [218, 126, 34]; // y of the tokens, of layer 1, of layer 2
const NAMES = ["tokens", "layer 1", "layer 2"];

/** @param {number} i */
const across = (i) => LEFT + i * APART;

/**
 * @param {{size: number, select: (query: number | null, key: number | null) => void}} given
 * @returns {{element: SVGSVGElement, update: (state: {mask: Mask, query: number,
 *   key: number, path: number[]}) => void}}
 */
export function layers({ size, select }) {
  const edges = svg("g");
  const nodes = ROWS.map((y, level) => Array.from({ length: size }, (_, i) => {
    const group = svg("g", { class: "masks-node", transform: `translate(${across(i)} ${y})` },
      svg("circle", { r: 12 }), svg("text", { y: 4.5, "text-anchor": "middle", text: i }));
    if (level === 0) group.addEventListener("click", () => select(null, i));
    if (level === 2) group.addEventListener("click", () => select(i, null));
    return group;
  }));
  const element = svg("svg", {
    class: "masks-layers", viewBox: `0 0 ${2 * LEFT + (size - 1) * APART} 240`,
    "aria-hidden": true,
  }, edges, ...nodes.flat(), ...NAMES.map((text, level) => svg("text", {
    class: "soft", x: 0, y: ROWS[level] - 18, text,
  })));
  return {
    element,
    update({ mask, query, key, path }) {
      const [by] = path;
      const lines = [1, 2].flatMap((level) => mask.flatMap((row, i) =>
        row.flatMap((may, j) => {
          if (!may) return [];
          const read = level === 2 ? i === query : mask[query][i];
          const marked = path.length > 0 &&
            (level === 2 ? i === query && j === by : i === by && j === key);
          const kind = marked ? "marked" : read ? "read" : "";
          return [{ kind, line: edge(level, i, j, kind) }];
        })));
      const order = ["", "read", "marked"];
      lines.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
      edges.replaceChildren(...lines.map(({ line }) => line));
      nodes.forEach((row, level) => row.forEach((node, i) => {
        const read = level === 2 ? i === query
          : level === 1 ? mask[query][i]
            : mask.some((line, k) => mask[query][k] && line[i]);
        const marked = level === 2 ? i === query
          : level === 1 ? path.length > 0 && i === by : i === key;
        set(node, { class: `masks-node${read ? " read" : ""}${marked ? " marked" : ""}` });
      }));
    },
  };
}

/**
 * @param {number} level of the query
 * @param {number} i
 * @param {number} j
 * @param {string} kind
 */
function edge(level, i, j, kind) {
  return svg("path", {
    class: `masks-edge ${kind}`,
    d: `M${across(j)} ${ROWS[level - 1] - 12}L${across(i)} ${ROWS[level] + 12}`,
  });
}
