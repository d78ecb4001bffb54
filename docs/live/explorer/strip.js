// A vector as a strip of cells: blue is positive, red negative, 0 the paper. A pointer or
// the arrow keys read out one number; all of them stand in a folded table.

import { RAMPS, between } from "../ui/colours.js";
import { h, set } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { numbers } from "../ui/table.js";
import { isDark } from "./maps.js";

/** @typedef {ArrayLike<number>} Numbers */

/**
 * Draw numbers into a canvas, a pixel a number, in so many rows.
 * @param {HTMLCanvasElement} canvas
 * @param {Numbers} values
 * @param {number} [most] the value of the strongest colour
 * @param {number} [rows]
 */
export function drawStrip(canvas, values, most = largest(values), rows = 1) {
  const columns = Math.ceil(values.length / rows);
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  if (!context) return;
  const scheme = isDark() ? "dark" : "light";
  for (let i = 0; i < values.length; i++) {
    const part = values[i] / (most || 1);
    const ramp = part < 0 ? RAMPS.reds[scheme] : RAMPS.blues[scheme];
    context.fillStyle = between(ramp, Math.abs(part));
    context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
  }
}

/** @param {Numbers} values */
export function largest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]));
  return most;
}

/**
 * The length of a vector: √Σ x².
 * @param {Numbers} values
 */
export function norm(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] ** 2;
  return Math.sqrt(sum);
}

/**
 * Make a strip with its name, a readout and its numbers.
 * @param {{name: string, values: Numbers, part?: [number, number]}} given `part` is
 *   outlined: from, to
 */
export function strip({ name, values, part }) {
  const count = values.length;
  const rows = count > 64 ? count / 64 : 1;
  const columns = count / rows;
  const canvas = h("canvas", { class: "strip-cells", "aria-hidden": "true" });
  drawStrip(canvas, values, largest(values), rows);
  const readout = h("output", { class: "strip-readout" });
  const cursor = h("span", { class: "strip-cursor", "aria-hidden": "true", hidden: true });
  const box = h("div", {
    class: "strip-box", role: "slider", tabindex: 0, "aria-label": `${name}: read a number`,
    "aria-valuemin": 1, "aria-valuemax": count,
  }, canvas, cursor);
  box.style.setProperty("--rows", String(rows));
  box.style.setProperty("--columns", String(columns));
  if (part) {
    const outline = h("span", { class: "strip-part", "aria-hidden": "true" });
    outline.style.left = `${(100 * part[0]) / columns}%`;
    outline.style.width = `${(100 * (part[1] - part[0])) / columns}%`;
    box.append(outline);
  }
  let at = -1;
  const rest = () => {
    at = -1;
    readout.textContent = `${count} numbers, length ${fixed(norm(values), 2)}`;
    cursor.hidden = true;
    set(box, { "aria-valuenow": 1, "aria-valuetext": readout.textContent });
  };
  const read = (/** @type {number} */ i) => {
    at = Math.max(0, Math.min(count - 1, i));
    readout.textContent = `number ${at + 1}: ${fixed(values[at], 4)}`;
    cursor.hidden = false;
    cursor.style.left = `${(100 * (at % columns)) / columns}%`;
    cursor.style.top = `${(100 * Math.floor(at / columns)) / rows}%`;
    set(box, { "aria-valuenow": at + 1, "aria-valuetext": readout.textContent });
  };
  const point = (/** @type {PointerEvent} */ event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - left) / width) * columns);
    const y = Math.floor(((event.clientY - top) / height) * rows);
    read(Math.max(0, Math.min(columns - 1, x)) + columns * Math.max(0, Math.min(rows - 1, y)));
  };
  box.addEventListener("pointermove", point);
  box.addEventListener("pointerdown", point);
  box.addEventListener("pointerleave", rest);
  box.addEventListener("blur", rest);
  box.addEventListener("keydown", (event) => {
    const to = {
      ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: count - 1,
      ArrowDown: at + columns, ArrowUp: at - columns,
    }[event.key];
    if (to === undefined || (rows === 1 && /Up|Down/.test(event.key))) return;
    event.preventDefault();
    read(to);
  });
  rest();
  return h("div", { class: "strip" },
    h("div", { class: "strip-top" }, h("span", { class: "strip-name", text: name }), readout),
    box, table(name, [{ name: "", values }]));
}

/**
 * A folded table of vectors, eight numbers a line, made when it is opened.
 * @param {string} name
 * @param {{name: string, values: Numbers}[]} vectors
 */
export function table(name, vectors) {
  const count = vectors[0]?.values.length ?? 0;
  const made = numbers({ caption: name, summary: vectors.length > 1 ? "Its numbers" : `Its ${count} numbers` });
  made.element.addEventListener("toggle", () => {
    if (!made.element.open) return;
    made.update({
      columns: ["", ...[...Array(8).keys()].map((i) => `+${i}`)],
      rows: vectors.flatMap((vector) => lines(vector)),
    });
  });
  return made.element;
}

/** @param {{name: string, values: Numbers}} vector */
function lines({ name, values }) {
  /** @type {(string | number)[][]} */
  const made = [];
  for (let from = 0; from < values.length; from += 8) {
    const eight = Array.from({ length: Math.min(8, values.length - from) }, (_, i) => values[from + i]);
    made.push([`${name} ${from + 1}`.trim(), ...eight.map((x) => fixed(x, 4))]);
  }
  return made;
}
