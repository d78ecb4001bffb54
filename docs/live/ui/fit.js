// Drawings whose text keeps its size: they are drawn anew for the width that they have.

import { set } from "./dom.js";

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
