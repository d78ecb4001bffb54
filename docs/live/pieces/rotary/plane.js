// One pair of numbers as two arrows in the plane, the query's and the key's, and the
// angle between them.

import { h, set, svg } from "../../ui/dom.js";
import { fixed } from "../../ui/format.js";

const [RADIUS, ARROW, WEDGE] = [46, 42, 18];

/** @typedef {{x: number, y: number}} Point */

/** @param {number} pair */
export function plane(pair) {
  const wedge = svg("path", { class: "rotary-wedge" });
  const [key, query] = ["key", "query"].map((name) =>
    svg("path", { class: `rotary-arrow ${name}` }));
  const speed = h("span", { class: "number" });
  const between = h("b", { class: "number" });
  const face = svg("svg", { viewBox: "-50 -50 100 100", "aria-hidden": true },
    svg("circle", { class: "rotary-face", r: RADIUS }), wedge, key, query);
  return {
    element: h("div", { class: "rotary-plane" }, face,
      h("p", {}, `pair ${pair}`, speed, between)),
    /**
     * @param {{query: Point, key: Point, longest: number, theta: number}} given
     *   the arrows, how long one is that reaches the rim, and θ
     */
    update(given) {
      const draw = (/** @type {Point} */ { x, y }) =>
        `M0 0L${at(x / given.longest * ARROW)} ${at(-y / given.longest * ARROW)}`;
      set(query, { d: draw(given.query) });
      set(key, { d: draw(given.key) });
      const angle = angleBetween(given.query, given.key);
      set(wedge, { d: sector(given.key, given.query, angle) });
      speed.textContent = `θ ${fixed(given.theta, 4)}`;
      between.textContent = fixed(angle, 3);
    },
  };
}

/**
 * By how many radians an arrow is ahead of another, from −π to π.
 * @param {Point} arrow
 * @param {Point} other
 */
export function angleBetween(arrow, other) {
  return Math.atan2(other.x * arrow.y - other.y * arrow.x,
    arrow.x * other.x + arrow.y * other.y);
}

/**
 * @param {Point} from
 * @param {Point} to
 * @param {number} angle from one to the other
 */
function sector(from, to, angle) {
  const tip = (/** @type {Point} */ { x, y }) => {
    const scale = WEDGE / (Math.hypot(x, y) || 1);
    return `${at(x * scale)} ${at(-y * scale)}`;
  };
  return `M0 0L${tip(from)}A${WEDGE} ${WEDGE} 0 0 ${angle > 0 ? 0 : 1} ${tip(to)}Z`;
}

/** @param {number} value */
function at(value) {
  return value.toFixed(2);
}
