// One step as two lanes: what a GPU computes, and what it sends meanwhile.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { milliseconds } from "./words.js";

const [LANES, LANE, HEIGHT] = [[26, 66], 30, 126];
const NAME = 74; // where the lanes begin

/** @param {() => void} redraw when the width has changed */
export function stepLanes(redraw) {
  const drawing = fitted(redraw);

  /** @param {{forward: number, backward: number, sending: number, total: number,
   *   waiting: number}} time in seconds */
  function update({ forward, backward, sending, total, waiting }) {
    drawing.height = HEIGHT;
    const scale = (drawing.width - NAME - 2) / total;
    const parts = [
      bar("forward", 0, 0, forward, "forward"),
      bar("backward", 0, forward, backward, "backward"),
      bar("waiting", 0, forward + backward, waiting, "waits"),
      bar("sending", 1, forward, sending, "gradients"),
    ];
    drawing.element.replaceChildren(
      svg("text", { class: "soft", x: 0, y: LANES[0] + 20, text: "computes" }),
      svg("text", { class: "soft", x: 0, y: LANES[1] + 20, text: "sends" }),
      ...parts,
      svg("path", { class: "end", d: `M${NAME + total * scale} ${LANES[0] - 8}V${LANES[1] + 38}` }),
      svg("text", { class: "strong", x: NAME + total * scale, y: HEIGHT - 6,
        "text-anchor": "end", text: `one step: ${milliseconds(total)}` }),
    );

    /**
     * @param {string} kind
     * @param {number} lane
     * @param {number} start in seconds
     * @param {number} length
     * @param {string} name
     */
    function bar(kind, lane, start, length, name) {
      const [x, width] = [NAME + start * scale, length * scale];
      const room = width > 8 * name.length + 8;
      return svg("g", { class: `lane ${kind}` },
        svg("rect", { x, y: LANES[lane], width: Math.max(width, 0), height: LANE, rx: 3 }),
        svg("text", { x: x + width / 2, y: LANES[lane] + 20, "text-anchor": "middle",
          text: room ? name : "" }));
    }
  }
  return { element: drawing.element, update };
}
