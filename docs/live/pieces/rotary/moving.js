// The score over the places that both tokens move on, and that the query moves on alone.

import { drawAxes, linear, path } from "../../ui/chart.js";
import { set, svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

/** @param {() => void} redraw when the width has changed */
export function moving(redraw) {
  const drawing = fitted(redraw);
  const axes = svg("g");
  const lines = { alone: svg("path", { class: "rotary-line alone" }),
    both: svg("path", { class: "rotary-line both" }) };
  const names = { alone: svg("text", { class: "halo rotary-name alone", text: "the query alone" }),
    both: svg("text", { class: "halo strong rotary-name both", text: "both tokens" }) };
  drawing.element.append(axes, ...Object.values(lines), ...Object.values(names));
  return {
    element: drawing.element,
    /**
     * @param {number[]} both the score after 0, 1, 2, … places
     * @param {number[]} alone
     */
    update(both, alone) {
      drawing.height = 232;
      const area = { left: 44, right: drawing.width - 12, top: 26, bottom: 186 };
      const most = both.length - 1;
      const x = linear([0, most], [area.left, area.right]);
      const y = linear([-1, 1], [area.bottom, area.top]);
      drawAxes(axes, area, { x, y, title: "score / 64", xName: "places moved on",
        xTicks: [0, most / 4, most / 2, (3 * most) / 4, most].map((value) =>
          ({ value, label: String(value) })),
        yTicks: [-1, -0.5, 0, 0.5, 1].map((value) => ({ value, label: fixed(value, 1) })) });
      set(lines.both, { d: path(both, x, y) });
      set(lines.alone, { d: path(alone, x, y) });
      const middle = Math.round(0.7 * most);
      set(names.both, { x: x(middle), y: y(both[middle]) - 9, "text-anchor": "middle" });
      const near = alone.slice(middle - 40, middle + 40); // below all that it stands under
      set(names.alone, { x: x(middle), y: y(Math.min(...near)) + 18, "text-anchor": "middle" });
    },
  };
}
