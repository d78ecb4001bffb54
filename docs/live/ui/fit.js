// Drawings whose text keeps its size: they are drawn anew for the width that they have.

import { set, svg } from "./dom.js";

/**
 * Give a drawing the width of the place it stands in, in units of a pixel.
 * @param {SVGSVGElement} drawing
 * @param {number} high its height in pixels
 * @param {(width: number) => void} draw is called with each new width
 */
export function fit(drawing, high, draw) {
  let last = 0;
  set(drawing, { width: "100%", height: high });
  new ResizeObserver(() => {
    const width = Math.round(drawing.getBoundingClientRect().width);
    if (!width || width === last) return;
    last = width;
    set(drawing, { viewBox: `0 0 ${width} ${high}` });
    draw(width);
  }).observe(drawing);
}

/**
 * Make a chart as wide as its place, whose height may change. It is drawn at once, for a
 * usual width, and again where that differs.
 * @param {() => void} redraw is called when the width has changed
 */
export function fitted(redraw) {
  const element = svg("svg", { class: "live-chart", "aria-hidden": "true" });
  let width = 480; // until it stands in the page
  new ResizeObserver(([{ contentRect }]) => {
    const now = Math.round(contentRect.width);
    if (now && now !== width) {
      width = now;
      redraw();
    }
  }).observe(element);
  return {
    element,
    get width() {
      return width;
    },
    /** @param {number} height */
    set height(height) {
      set(element, { viewBox: `0 0 ${width} ${height}`, height });
    },
  };
}
