// What each clock adds to the product: a bar up or down.

import { set, svg } from "../../ui/dom.js";
import { fit } from "../../ui/fit.js";

const [HIGH, LEFT] = [104, 26];
const MIDDLE = 46;
const REACH = 40; // pixels of a bar of 1

/** @param {{count: number}} given */
export function bars({ count }) {
  const all = Array.from({ length: count }, () => svg("rect", { rx: 1.5 }));
  const frame = svg("g", { class: "products-axis" });
  const element = svg("svg", { class: "products-bars", "aria-hidden": true }, frame, ...all);
  /** @type {number[]} */
  let values = [];

  function update() {
    all.forEach((bar, i) => {
      const value = values[i] ?? 0;
      set(bar, {
        class: value < 0 ? "negative" : "positive",
        y: MIDDLE - Math.max(value, 0) * REACH, height: Math.max(Math.abs(value) * REACH, 0.8),
      });
    });
  }

  fit(element, HIGH, (width) => {
    const step = (width - LEFT) / count;
    all.forEach((bar, i) => set(bar, { x: LEFT + i * step + step * 0.12, width: step * 0.76 }));
    frame.replaceChildren(
      svg("path", { d: `M${LEFT} ${MIDDLE}H${width}` }),
      ...[[1, "1"], [0, "0"], [-1, "−1"]].map(([level, text]) => svg("text", {
        class: "soft", x: LEFT - 6, y: MIDDLE - Number(level) * REACH + 4, "text-anchor": "end", text,
      })),
      ...[0, 8, 16, 24, count - 1].map((i) => svg("text", {
        class: "soft", x: LEFT + (i + 0.5) * step, y: HIGH - 1, "text-anchor": "middle", text: i,
      })));
    update();
  });
  return {
    element,
    /** @param {number[]} given */
    update(given) {
      values = given;
      update();
    },
  };
}
