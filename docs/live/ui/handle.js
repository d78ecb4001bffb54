// A point of a drawing that the reader moves: by mouse, by finger, by the arrow keys.

import { set, svg } from "./dom.js";

/** @typedef {{x: number, y: number}} Point */

const KEYS = /** @type {Record<string, [number, number]>} */ ({
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
});

/**
 * Make a handle; the caller draws on `element`, a group of 24 pixels or more.
 * @param {{label: string, step: number, point: () => Point, text: () => string,
 *   toPoint: (x: number, y: number) => Point, move: (point: Point) => void,
 *   along?: "x" | "y", least?: number, most?: number}} given
 *   `toPoint` turns pixels of the window into the drawing's own units; `move` takes a
 *   point that the reader asks for, and may keep it inside bounds; `text` says where it
 *   is. `along` is the axis that is told as a number, and the only one that moves if
 *   it is given.
 * @returns {{element: SVGGElement, update: () => void}}
 */
export function handle({ label, step, point, text, toPoint, move, along, least, most }) {
  const element = svg("g", {
    class: "live-handle", role: "slider", tabindex: 0, "aria-label": label,
    "aria-valuemin": least ?? -100, "aria-valuemax": most ?? 100,
  });
  // `touch-action: none` does not hold inside an SVG: without this the page would scroll.
  element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  let grip = { x: 0, y: 0 }; // from the pointer to the point, when it was taken
  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const from = toPoint(event.clientX, event.clientY);
    grip = { x: point().x - from.x, y: point().y - from.y };
    element.setPointerCapture(event.pointerId);
    element.classList.add("held");
    element.focus({ preventScroll: true });
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const to = toPoint(event.clientX, event.clientY);
    move({ x: to.x + grip.x, y: to.y + grip.y });
  });
  for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
    element.addEventListener(name, () => element.classList.remove("held"));
  }
  element.addEventListener("keydown", (event) => {
    let by = KEYS[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (along) {
      const sum = by[0] + by[1];
      by = along === "x" ? [sum, 0] : [0, sum];
    }
    const size = event.shiftKey ? 5 * step : step;
    const { x, y } = point();
    move({ x: x + by[0] * size, y: y + by[1] * size });
  });
  return {
    element,
    update() {
      const value = along === "y" ? point().y : point().x;
      set(element, {
        "aria-valuenow": Math.round(value * 1000) / 1000,
        "aria-valuetext": text(),
      });
    },
  };
}

/**
 * Return how pixels of the window become units of an SVG's viewBox, wherever it stands.
 * @param {SVGSVGElement} drawing
 * @returns {(x: number, y: number) => Point}
 */
export function inDrawing(drawing) {
  return (x, y) => {
    const matrix = drawing.getScreenCTM();
    const point = new DOMPoint(x, y).matrixTransform(matrix?.inverse());
    return { x: point.x, y: point.y };
  };
}
