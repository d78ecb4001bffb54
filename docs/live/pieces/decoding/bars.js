// Bars of the next token: what the model says, what is left of it, what was drawn.

import { drawAxes, linear } from "../../ui/chart.js";
import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed, percent } from "../../ui/format.js";

/**
 * @typedef {object} Bar
 * @property {string} token
 * @property {number} before its probability from the model, temperature 1
 * @property {number} after what it is drawn with; 0 if it was cut off
 * @property {string} cut the letter of the filter that cut it off, or ""
 * @property {number} drawn how often it was drawn
 */

const [TOP, BOTTOM, HEIGHT] = [30, 216, 284];

/** @param {() => void} redraw when the width has changed */
export function bars(redraw) {
  const drawing = fitted(redraw);
  const axes = svg("g");
  const drawn = svg("g");
  drawing.element.append(axes, drawn);

  /**
   * @param {Bar[]} given
   * @param {number} draws how many tokens were drawn in all
   */
  function update(given, draws) {
    drawing.height = HEIGHT;
    const area = { left: 44, right: drawing.width - 4, top: TOP, bottom: BOTTOM };
    const parts = given.map(({ drawn }) => (draws ? drawn / draws : 0));
    const most = Math.max(...given.flatMap(({ before, after }) => [before, after]), ...parts);
    const high = [0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1].find((value) => value >= most) ?? 1;
    const y = linear([0, high], [area.bottom, area.top]);
    const step = (area.right - area.left) / given.length;
    const x = (/** @type {number} */ i) => area.left + (i + 0.5) * step;
    const yTicks = [0, high / 2, high].map((value) => ({ value, label: percent(value) }));
    drawAxes(axes, area, { x, y, yTicks, xTicks: [] });
    const wide = Math.min(0.74 * step, 46);
    drawn.replaceChildren(...given.flatMap(({ token, before, after, cut }, i) => [
      svg("rect", { class: "after", x: x(i) - wide / 2, width: wide, y: y(after),
        height: BOTTOM - y(after) }),
      svg("rect", { class: cut ? "before cut" : "before", x: x(i) - wide / 2, width: wide,
        y: y(before), height: BOTTOM - y(before) }),
      svg("text", { class: cut ? "soft" : "strong", x: x(i), y: BOTTOM + 20,
        "text-anchor": "middle", text: token }),
      cut && svg("text", { class: "cut-by", x: x(i), y: BOTTOM + 38, "text-anchor": "middle",
        text: cut }),
      after > 0 && step > 31 && svg("text", { class: "number halo", x: x(i),
        y: y(Math.max(before, after)) - 7, "text-anchor": "middle", text: fixed(after) }),
      draws > 0 && svg("path", { class: "draws",
        d: `M${x(i)} ${y(parts[i]) - 6}l6 6l-6 6l-6 -6Z` }),
    ].filter((each) => each instanceof SVGElement)));
    const cuts = given.some(({ cut }) => cut);
    if (cuts) {
      drawn.append(svg("text", { class: "soft", x: area.left, y: BOTTOM + 60,
        text: "k, p, m: cut off by top-k, top-p, min-p" }));
    }
  }
  return { element: drawing.element, update };
}
