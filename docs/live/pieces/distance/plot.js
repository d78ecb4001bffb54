// Something over the distance of a key from its query, and a mark at one distance.

import { drawAxes, linear, place } from "../../ui/chart.js";
import { set, svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

/** @param {() => void} redraw when the width has changed */
export function plot(redraw) {
  const drawing = fitted(redraw);
  const axes = svg("g");
  const lines = { before: svg("path", { class: "distance-line" }),
    after: svg("path", { class: "distance-line after" }) };
  const dot = svg("circle", { class: "distance-dot", r: 6 });
  drawing.element.append(axes, ...Object.values(lines), dot);
  return {
    element: drawing.element,
    /**
     * @param {{values: number[], reach: number, now: number, title: string,
     *   yTicks: import("../../ui/chart.js").Tick[]}} given
     *   values of the distances −reach to reach, and the distance of the mark
     */
    update({ values, reach, now, title, yTicks }) {
      drawing.height = 252;
      const area = { left: 40, right: drawing.width - 10, top: 26, bottom: 206 };
      const x = linear([-reach, reach], [area.left, area.right]);
      const y = linear([yTicks[0].value, yTicks[yTicks.length - 1].value], [area.bottom, area.top]);
      const half = (x(1) - x(0)) / 2;
      drawAxes(axes, area, { x, y, yTicks, title, xName: "distance: key after | key before",
        xTicks: [-reach, -reach / 2, 0, reach / 2, reach].map((value) =>
          ({ value, label: fixed(value, 0) })) });
      // A step as wide as a place: a distance is a whole number.
      const steps = (/** @type {number} */ from, /** @type {number} */ to) =>
        values.slice(from + reach, to + reach + 1).map((value, i) =>
          `${i ? "L" : "M"}${(x(from + i) - half).toFixed(1)} ${y(value).toFixed(1)}` +
          `H${(x(from + i) + half).toFixed(1)}`).join("");
      set(lines.after, { d: steps(-reach, -1) });
      set(lines.before, { d: steps(0, reach) });
      place(dot, x(now), y(values[now + reach]));
    },
  };
}
