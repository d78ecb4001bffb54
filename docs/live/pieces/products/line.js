// The line of positions, on which p and q are dragged.

import { set, svg } from "../../ui/dom.js";
import { fit } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";
import { handle, inDrawing } from "../../ui/handle.js";

const [HIGH, Y, SIDE] = [88, 44, 18];
const OFF = 20; // p stands above the line, q below

/**
 * @param {{last: number, at: {p: number, q: number},
 *   move: (name: "p" | "q", to: number) => void}} given
 */
export function line({ last, at, move }) {
  const axis = svg("g", { class: "products-axis" });
  const span = svg("path", { class: "products-span" });
  const distance = svg("text", { class: "strong", y: Y - 12 });
  const element = svg("svg", { class: "products-line" }, axis, span, distance);
  const toLine = inDrawing(element);
  let width = 640;
  /** @param {number} position */
  const across = (position) => SIDE + (position / last) * (width - 2 * SIDE);

  const names = /** @type {const} */ (["q", "p"]);
  const grips = names.map((name) => {
    const grip = handle({
      label: `position ${name}`, step: 1, along: "x", least: 0, most: last,
      point: () => ({ x: at[name], y: 0 }),
      text: () => String(at[name]),
      toPoint: (x, y) => ({
        x: ((toLine(x, y).x - SIDE) / (width - 2 * SIDE)) * last, y: 0,
      }),
      move: ({ x }) => move(name, x),
    });
    const text = svg("text", { class: "products-letter", y: 5, "text-anchor": "middle", text: name });
    const place = svg("text", { class: "number", y: 5 });
    const stem = svg("path", { class: "stem", d: `M0 0V${name === "p" ? OFF : -OFF}` });
    grip.element.classList.add("products-grip", name);
    grip.element.append(stem, svg("circle", { class: "ring", r: 17 }),
      svg("circle", { class: "knob", r: 13 }), text, place);
    element.append(grip.element);
    return { name, grip, place };
  });

  function update() {
    const [left, right] = [Math.min(at.p, at.q), Math.max(at.p, at.q)].map(across);
    set(span, { d: `M${left} ${Y}H${right}` });
    const after = right + 150 < width; // is there room for the text behind them?
    set(distance, {
      x: after ? right + 54 : left - 54, "text-anchor": after ? "start" : "end",
      text: `p − q = ${fixed(at.p - at.q, 0)}`,
    });
    for (const { name, grip, place } of grips) {
      const y = name === "p" ? Y - OFF : Y + OFF;
      set(grip.element, { transform: `translate(${across(at[name])} ${y})` });
      set(place, {
        text: at[name], x: after ? 18 : -18, "text-anchor": after ? "start" : "end",
      });
      grip.update();
    }
  }

  fit(element, HIGH, (now) => {
    width = now;
    const ticks = [0, 50, 100, 150, last];
    axis.replaceChildren(svg("path", { d: `M${SIDE} ${Y}H${width - SIDE}` }),
      ...ticks.map((tick) => svg("path", { d: `M${across(tick)} ${Y - 4}v8` })));
    update();
  });
  return { element, update };
}
