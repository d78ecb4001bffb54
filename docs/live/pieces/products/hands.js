// One clock with the hands of two positions, and the angle between them.

import { h, set, svg } from "../../ui/dom.js";
import { fixed } from "../../ui/format.js";

const [RADIUS, HAND] = [46, 40];

/** @param {string} name */
export function hands(name) {
  const wedge = svg("path", { class: "products-wedge" });
  const [p, q] = ["p", "q"].map((letter) => svg("path", { class: `products-hand ${letter}` }));
  const value = h("b", { class: "number" });
  const face = svg("svg", { viewBox: "-50 -50 100 100", "aria-hidden": true },
    svg("circle", { class: "products-face", r: RADIUS }), wedge, q, p,
    svg("circle", { class: "products-middle", r: 3 }));
  return {
    element: h("div", { class: "products-clock" }, face,
      h("p", {}, name, h("span", {}, "cos of the angle ", value))),
    /**
     * @param {number} angleP
     * @param {number} angleQ
     * @param {number} cosine what the clock adds to the product
     */
    update(angleP, angleQ, cosine) {
      const between = Math.atan2(Math.sin(angleP - angleQ), Math.cos(angleP - angleQ));
      set(p, { d: `M0 0L${tip(angleP, HAND)}` });
      set(q, { d: `M0 0L${tip(angleQ, HAND)}` });
      const sweep = between > 0 ? 1 : 0;
      set(wedge, { d: `M0 0L${tip(angleQ, 22)}A22 22 0 0 ${sweep} ${tip(angleP, 22)}Z` });
      value.textContent = fixed(cosine, 4);
    },
  };
}

/**
 * @param {number} angle from the top, clockwise
 * @param {number} long
 */
function tip(angle, long) {
  return `${(long * Math.sin(angle)).toFixed(2)} ${(-long * Math.cos(angle)).toFixed(2)}`;
}
