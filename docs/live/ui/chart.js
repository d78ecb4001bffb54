// Lines over two axes, in an SVG: what the pieces with curves share.

import { set, svg } from "./dom.js";

/**
 * @typedef {(value: number) => number} Scale from a value to a place in the drawing
 */

/**
 * Return a linear scale.
 * @param {[number, number]} values
 * @param {[number, number]} places
 * @returns {Scale}
 */
export function linear([low, high], [from, to]) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

/**
 * Return a logarithmic scale; what is not above 0 stands at its lower end.
 * @param {[number, number]} values
 * @param {[number, number]} places
 * @returns {Scale}
 */
export function logarithmic([low, high], places) {
  const scale = linear([Math.log(low), Math.log(high)], places);
  return (value) => scale(Math.log(Math.max(value, low)));
}

/**
 * @typedef {object} Area Where the lines are, in units of the drawing.
 * @property {number} left
 * @property {number} right
 * @property {number} top
 * @property {number} bottom
 */
/** @typedef {{value: number, label: string}} Tick */

/**
 * Draw both axes anew into a group: lines of the grid, numbers, names.
 * @param {SVGGElement} group
 * @param {Area} area
 * @param {{x: Scale, y: Scale, xTicks: Tick[], yTicks: Tick[], xName?: string,
 *   title?: string}} given
 */
export function drawAxes(group, area, { x, y, xTicks, yTicks, xName, title }) {
  const { left, right, top, bottom } = area;
  group.replaceChildren();
  for (const { value, label } of yTicks) {
    group.append(
      svg("line", { class: "live-grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { class: "live-tick", x: left - 7, y: y(value) + 5, "text-anchor": "end",
        text: label }),
    );
  }
  for (const { value, label } of xTicks) {
    group.append(
      svg("line", { class: "live-axis", x1: x(value), x2: x(value), y1: bottom,
        y2: bottom + 5 }),
      svg("text", { class: "live-tick", x: x(value), y: bottom + 20,
        "text-anchor": "middle", text: label }),
    );
  }
  group.append(svg("line", { class: "live-axis", x1: left, x2: right, y1: bottom,
    y2: bottom }));
  if (xName) {
    group.append(svg("text", { class: "live-axis-name", x: (left + right) / 2,
      y: bottom + 39, "text-anchor": "middle", text: xName }));
  }
  if (title) {
    group.append(svg("text", { class: "live-chart-title", x: left, y: top - 12,
      text: title }));
  }
}

/**
 * The path of a line through points; it breaks where a number is missing.
 * @param {(number | undefined)[]} values
 * @param {(index: number) => number} x
 * @param {Scale} y
 */
export function path(values, x, y) {
  let pen = "M";
  let d = "";
  values.forEach((value, i) => {
    if (value === undefined || !Number.isFinite(value)) {
      pen = "M";
      return;
    }
    d += `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return d;
}

/**
 * Powers of ten between two, at most so many: 10⁻¹⁵, 10⁻¹⁰, …
 * @param {number} low an exponent
 * @param {number} high an exponent
 * @param {number} [most]
 * @returns {Tick[]}
 */
export function powersOfTen(low, high, most = 6) {
  const steps = [1, 2, 3, 5, 10, 20, 50];
  const step = steps.find((n) => (high - low) / n < most) ?? 100;
  const ticks = [];
  for (let n = Math.ceil(low / step) * step; n <= high; n += step) {
    ticks.push({ value: 10 ** n, label: power(n) });
  }
  return ticks;
}

/**
 * A power of ten as it is written: 1, 10, 0.1, 10⁻¹⁵.
 * @param {number} exponent
 */
export function power(exponent) {
  if (exponent >= -2 && exponent <= 3) {
    return String(Number((10 ** exponent).toPrecision(1))).replace("1000", "1,000");
  }
  return `10${superscript(exponent)}`;
}

/** @param {number} exponent */
export function superscript(exponent) {
  const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶",
    7: "⁷", 8: "⁸", 9: "⁹" };
  return [...String(exponent)]
    .map((c) => digits[/** @type {keyof typeof digits} */ (c)]).join("");
}

/**
 * A number of any size, with two digits or more that count: 0.054, 1.61, 3,088, 8.2 · 10⁻¹⁶.
 * @param {number} value
 */
export function anySize(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e5 || size < 1e-2) {
    const [digits, exponent] = value.toExponential(1).split("e");
    return `${digits.replace("-", "−")} · 10${superscript(Number(exponent))}`;
  }
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 10 ? 1 : size >= 0.1 ? 2 : 3).replace("-", "−");
}

/**
 * Put a dot on a line.
 * @param {SVGCircleElement} dot
 * @param {number} x
 * @param {number} y
 */
export function place(dot, x, y) {
  set(dot, { cx: x.toFixed(1), cy: y.toFixed(1) });
}
