// What one token depends on: in the output itself above, and then in what each layer reads,
// down to the input, which the first layer reads.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";

const [ROW, CELL, LEFT] = [26, 16, 62];

/** @param {() => void} redraw when the width has changed */
export function drawing(redraw) {
  const picture = fitted(redraw);
  return {
    element: picture.element,
    /**
     * @param {boolean[][]} stages from the output to the input
     * @param {(number | null)[]} windows of the layers, from the first to the last
     */
    update(stages, windows) {
      const rows = stages.length;
      picture.height = rows * ROW + 4;
      const step = (picture.width - LEFT) / stages[0].length;
      picture.element.replaceChildren(...stages.flatMap((stage, i) => [
        svg("text", { class: i && windows[rows - 1 - i] === null ? "window-global" : "soft",
          x: 0, y: i * ROW + 13, text: i ? `layer ${rows - i}` : "output" }),
        ...stage.map((there, token) => svg("rect", {
          class: there ? "window-cell there" : "window-cell", x: LEFT + token * step,
          width: 0.84 * step, y: i * ROW, height: CELL,
        })),
      ]));
    },
  };
}
