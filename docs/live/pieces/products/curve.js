// The product of two positions as a curve over their distance, with a mark on it.

import { set, svg } from "../../ui/dom.js";
import { fit } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

const [HIGH, LEFT, RIGHT] = [150, 26, 8];
const [TOP, BOTTOM] = [12, 124];

/**
 * @param {{reach: number, most: number, value: (distance: number) => number}} given
 *   the largest distance to both sides, the largest value, the curve
 */
export function curve({ reach, most, value }) {
  const path = svg("path", { class: "products-curve" });
  const frame = svg("g", { class: "products-axis" });
  const drop = svg("path", { class: "products-drop" });
  const dot = svg("circle", { class: "products-dot", r: 6 });
  const label = svg("text", { class: "strong number" });
  const element = svg("svg", { "aria-hidden": true }, frame, path, drop, dot, label);
  let width = 640;
  let [distance, height] = [0, most];
  /** @param {number} d */
  const across = (d) => LEFT + ((d + reach) / (2 * reach)) * (width - LEFT - RIGHT);
  /** @param {number} v */
  const up = (v) => BOTTOM - (v / most) * (BOTTOM - TOP);

  function update() {
    const [x, y] = [across(distance), up(height)];
    set(dot, { cx: x, cy: y });
    set(drop, { d: `M${x} ${y}V${BOTTOM}` });
    const right = x < width - 90;
    set(label, {
      x: x + (right ? 11 : -11), y: Math.max(y + 4, 14), text: fixed(height, 4),
      "text-anchor": right ? "start" : "end",
    });
  }

  fit(element, HIGH, (now) => {
    width = now;
    const points = Array.from({ length: 2 * reach + 1 }, (_, i) =>
      `${across(i - reach).toFixed(1)} ${up(value(i - reach)).toFixed(1)}`);
    set(path, { d: `M${points.join("L")}` });
    const marks = [-reach, -100, 0, 100, reach];
    frame.replaceChildren(svg("path", { d: `M${LEFT} ${BOTTOM}H${width - RIGHT}` }),
      ...[0, most / 2, most].map((v) => svg("text", {
        class: "soft", x: LEFT - 6, y: up(v) + 4, "text-anchor": "end", text: v,
      })),
      ...marks.map((d) => svg("text", {
        class: "soft", x: Math.min(across(d), width - 14), y: BOTTOM + 18,
        "text-anchor": "middle", text: fixed(d, 0),
      })));
    update();
  });
  return {
    element,
    /**
     * @param {number} at the distance
     * @param {number} product
     */
    update(at, product) {
      [distance, height] = [at, product];
      update();
    },
  };
}
