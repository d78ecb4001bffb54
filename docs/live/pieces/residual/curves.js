// Two panels over the layers: the signal on its way up, the gradient on its way back.

import { drawAxes, linear, logarithmic, path, place, powersOfTen } from "../../ui/chart.js";
import { set, svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";

/** @typedef {import("./kinds.js").Kind} Kind */
/** @typedef {{signals: number[], gradients: number[]}} Lines */

const TITLES = {
  signals: "signal, on its way up →",
  gradients: "← gradient, on its way back",
};
const HEIGHT = 372;

/** @param {() => void} redraw when the width has changed */
export function curves(redraw) {
  const drawing = fitted(redraw);
  const panels = Object.entries(TITLES).map(([name, title]) => {
    const key = /** @type {keyof typeof TITLES} */ (name);
    const parts = { axes: svg("g"), lines: svg("g"), dot: svg("circle", { r: 5 }) };
    drawing.element.append(...Object.values(parts));
    return { key, title, ...parts };
  });

  /**
   * @param {number} depth
   * @param {{kind: Kind, lines: Lines, now: boolean}[]} drawn the one that is `now` last
   */
  function update(depth, drawn) {
    drawing.height = HEIGHT;
    const sides = { left: 50, right: drawing.width - 12 };
    for (const { key, title, axes, lines, dot } of panels) {
      const last = key === "gradients";
      const area = last ? { ...sides, top: 184, bottom: 326 } : { ...sides, top: 28, bottom: 130 };
      const values = drawn.flatMap((each) => each.lines[key]).filter((x) => x > 0);
      const low = Math.min(-1, Math.floor(Math.log10(Math.min(...values))));
      const high = Math.max(1, Math.ceil(Math.log10(Math.max(...values))));
      const x = linear([0, depth], [area.left, area.right]);
      const y = logarithmic([10 ** low, 10 ** high], [area.bottom, area.top]);
      drawAxes(axes, area, {
        x, y, title, xTicks: layerTicks(depth, last), yTicks: powersOfTen(low, high, 5),
        xName: last ? "after layer" : "",
      });
      lines.replaceChildren(...drawn.map(({ kind, lines: each, now }) =>
        svg("path", { class: now ? "curve now" : "curve", stroke: `var(--live-${kind.ink})`,
          "stroke-dasharray": kind.dash || null, d: path(each[key], x, y) })));
      const head = drawn[drawn.length - 1];
      const line = head.lines[key];
      const at = last ? line.findIndex((value) => value > 0) : line.length - 1;
      set(dot, { fill: `var(--live-${head.kind.ink})` });
      place(dot, x(at), y(line[at]));
    }
  }
  return { element: drawing.element, update };
}

/**
 * @param {number} depth
 * @param {boolean} labelled
 */
function layerTicks(depth, labelled) {
  const step = [1, 2, 4, 6, 8, 12, 16].find((n) => depth / n <= 6) ?? 16;
  const ticks = [];
  for (let n = 0; n <= depth; n += step) {
    ticks.push({ value: n, label: labelled ? String(n) : "" });
  }
  return ticks;
}
