// The tree of a beam search: a column for each step, the likeliest text on top.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";
import { textOf } from "./table.js";

/** @typedef {import("../../engine/beam.js").Beam} Beam */
/** @typedef {"grows" | "ended" | "dropped"} Fate */
/** @typedef {{beam: Beam, fate: Fate}} Candidate */

const [TALL, LOW, BOX, HEAD] = [46, 24, 38, 34]; // heights: of rows, of a box, of the head
const START = 44; // where the first column begins

/** @param {() => void} redraw when the width has changed */
export function beamTree(redraw) {
  const drawing = fitted(redraw);

  /**
   * @param {Candidate[][]} steps those done so far, each the best first
   * @param {number} columns steps that there will be
   */
  function update(steps, columns) {
    const wide = (drawing.width - START) / columns;
    const side = Math.min(wide - 24, 92);
    const edges = [];
    /** @type {SVGElement[]} */
    const nodes = [svg("text", { class: "strong", x: 0, y: HEAD + TALL / 2 + 5, text: "start" })];
    /** Where the beams of the step before end. @type {{x: number, y: number}[]} */
    let from = [{ x: 38, y: HEAD + TALL / 2 }];
    let height = 0;
    for (const [step, candidates] of steps.entries()) {
      const x = START + step * wide + 22;
      nodes.push(svg("text", { class: "soft", x, y: 16, text: `step ${step + 1}` }));
      /** @type {typeof from} */
      const ends = [];
      let top = HEAD;
      for (const { beam, fate } of candidates) {
        const high = fate === "dropped" ? LOW : TALL;
        const [start, y] = [from[beam.parent], top + high / 2];
        const bend = (start.x + x) / 2;
        edges.push(svg("path", { class: `edge ${fate}`,
          d: `M${start.x} ${start.y}C${bend} ${start.y} ${bend} ${y} ${x} ${y}` }));
        nodes.push(node({ beam, fate }, x, y, side));
        if (fate === "grows") ends.push({ x: x + side, y });
        top += high;
      }
      from = ends;
      height = Math.max(height, top);
    }
    drawing.height = height + 4;
    edges.sort((a, b) => Number(b.classList.contains("dropped")) -
      Number(a.classList.contains("dropped"))); // what is kept lies above
    drawing.element.replaceChildren(...edges, ...nodes);
  }
  return { element: drawing.element, update };
}

/**
 * @param {Candidate} candidate
 * @param {number} x of its left side
 * @param {number} y of its middle
 * @param {number} side
 */
function node({ beam, fate }, x, y, side) {
  const text = textOf(beam.ids);
  const sum = fixed(beam.sum);
  if (fate === "dropped") {
    const both = side > 76 ? `${text}  ${sum}` : text;
    return svg("g", { class: "node dropped" }, svg("text", { x: x + 4, y: y + 5, text: both }));
  }
  const middle = { x: x + side / 2, "text-anchor": "middle" };
  return svg("g", { class: `node ${fate}` },
    svg("rect", { x, y: y - BOX / 2, width: side, height: BOX,
      rx: fate === "ended" ? BOX / 2 : 4 }),
    svg("text", { ...middle, class: "text", y: y - 2, text }),
    svg("text", { ...middle, class: "number", y: y + 14, text: sum }));
}
