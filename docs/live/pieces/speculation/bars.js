// For each token three bars: what the model wants, what the draft proposes, and what comes
// in total, of proposals that were kept and of what replaced the others.

import { drawAxes, linear } from "../../ui/chart.js";
import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

/** @param {() => void} redraw when the width has changed */
export function bars(redraw) {
  const drawing = fitted(redraw);
  const [axes, drawn] = [svg("g"), svg("g")];
  drawing.element.append(axes, drawn);
  return {
    element: drawing.element,
    /**
     * @param {{name: string, p: number, q: number, kept: number, replaced: number}[]} tokens
     */
    update(tokens) {
      drawing.height = 236;
      const area = { left: 34, right: drawing.width - 4, top: 22, bottom: 196 };
      const most = Math.max(...tokens.flatMap(({ p, q, kept, replaced }) => [p, q, kept + replaced]));
      const high = most > 0.75 ? 1 : 0.8;
      const y = linear([0, high], [area.bottom, area.top]);
      const step = (area.right - area.left) / tokens.length;
      const x = (/** @type {number} */ i) => area.left + i * step;
      drawAxes(axes, area, { x, y, xTicks: [],
        yTicks: [0, high / 2, high].map((value) => ({ value, label: fixed(value, 1) })) });
      const wide = 0.24 * step;
      drawn.replaceChildren(...tokens.flatMap(({ name, p, q, kept, replaced }, i) => {
        const bar = (/** @type {string} */ kind, /** @type {number} */ place,
          /** @type {number} */ from, /** @type {number} */ size) => svg("rect", {
          class: `speculation-bar ${kind}`, x: x(i) + (0.1 + 0.28 * place) * step, width: wide,
          y: y(from + size), height: y(from) - y(from + size) });
        const under = (/** @type {string} */ text, /** @type {number} */ place) => svg("text", {
          class: "soft", x: x(i) + (0.1 + 0.28 * place) * step + wide / 2, y: area.bottom + 17,
          "text-anchor": "middle", text });
        return [bar("p", 0, 0, p), bar("q", 1, 0, q), bar("kept", 2, 0, kept),
          bar("replaced", 2, kept, replaced), under("p", 0), under("q", 1), under("total", 2),
          svg("text", { class: "strong", x: x(i) + step / 2, y: area.bottom + 36,
            "text-anchor": "middle", text: name })];
      }));
    },
  };
}
