// A line for each group: the values that its codes stand for, and the weights above them,
// each with an arrow to the value that is read.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

const [ROW, DOT, MARK, SIDE] = [76, 30, 56, 14];

/** @param {() => void} redraw when the width has changed */
export function lines(redraw) {
  const picture = fitted(redraw);
  return {
    element: picture.element,
    /**
     * @param {number[]} weights
     * @param {number[]} read what is read in the place of each
     * @param {number[]} scales
     * @param {number} most the largest code
     */
    update(weights, read, scales, most) {
      picture.height = ROW * scales.length + 4;
      const group = weights.length / scales.length;
      picture.element.replaceChildren(...scales.flatMap((scale, row) => {
        const top = row * ROW;
        const long = picture.width - 2 * SIDE;
        const x = (/** @type {number} */ value) =>
          SIDE + (value / (scale * most || 1) + 1) / 2 * long;
        const own = weights.map((_, i) => i).slice(row * group, (row + 1) * group);
        return [
          svg("text", { class: "soft", x: 0, y: top + 13, text: `scale ${fixed(scale, 4)}` }),
          svg("path", { class: "codes-marks", d: Array.from({ length: 2 * most + 1 }, (_, i) =>
            `M${x((i - most) * scale).toFixed(2)} ${top + MARK}v10`).join("") }),
          svg("path", { class: "codes-line", d: `M${SIDE} ${top + MARK + 5}h${long}` }),
          ...own.flatMap((i) => [
            svg("path", { class: "codes-arrow",
              d: `M${x(weights[i]).toFixed(2)} ${top + DOT}L${x(read[i]).toFixed(2)} ${top + MARK}` }),
            svg("circle", { class: read[i] === 0 && weights[i] !== 0 ? "codes-dot zero" : "codes-dot",
              cx: x(weights[i]).toFixed(2), cy: top + DOT, r: 4.5 }),
          ]),
        ];
      }));
    },
  };
}
