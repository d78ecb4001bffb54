// Efficiency over the number of GPUs: the reader's line, and the chapter's two networks.

import { drawAxes, linear, logarithmic, path, place } from "../../ui/chart.js";
import { set, svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { percent } from "../../ui/format.js";

/** @param {() => void} redraw when the width has changed */
export function plot(redraw) {
  const drawing = fitted(redraw);
  const parts = { axes: svg("g"), machine: svg("path", { class: "machine" }), others: svg("g"),
    line: svg("path", { class: "line" }), dot: svg("circle", { class: "dot", r: 6 }),
    name: svg("text", { class: "strong halo" }) };
  drawing.element.append(...Object.values(parts));

  /**
   * @param {number[]} counts GPUs
   * @param {number[]} line efficiency at each
   * @param {{name: string, line: number[], at: number}[]} others `at` is where the name is
   * @param {number} now the place of the chosen number
   */
  function update(counts, line, others, now) {
    drawing.height = 262;
    const area = { left: 52, right: drawing.width - 16, top: 22, bottom: 212 };
    const x = logarithmic([1, 1024], [area.left, area.right]);
    const y = linear([0, 1], [area.bottom, area.top]);
    drawAxes(parts.axes, area, { x, y, title: "", xName: "GPUs",
      xTicks: [1, 8, 64, 512].map((value) => ({ value, label: String(value) })),
      yTicks: [0, 0.5, 1].map((value) => ({ value, label: percent(value) })) });
    set(parts.machine, { d: `M${x(8)} ${area.top}V${area.bottom}` });
    const at = (/** @type {number} */ i) => x(counts[i]);
    parts.others.replaceChildren(...others.flatMap((other) => [
      svg("path", { class: "other", d: path(other.line, at, y) }),
      svg("text", { class: "soft halo", x: at(other.at), y: y(other.line[other.at]) - 8,
        "text-anchor": "middle", text: other.name }),
    ]));
    set(parts.line, { d: path(line, at, y) });
    place(parts.dot, at(now), y(line[now]));
    const right = at(now) > (area.left + area.right) / 2;
    set(parts.name, { x: at(now) + (right ? -10 : 10), y: y(line[now]) + 24,
      "text-anchor": right ? "end" : "start", text: percent(line[now]) });
  }
  return { element: drawing.element, update };
}
