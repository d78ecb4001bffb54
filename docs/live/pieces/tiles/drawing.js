// The exponentials of all keys that were read, relative to the largest score so far: they
// shrink when a larger one comes.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { fixed } from "../../ui/format.js";

const [TOP, BOTTOM, HEIGHT] = [44, 150, 196];

/**
 * @typedef {object} Key
 * @property {number} score
 * @property {number} value
 * @property {number | null} power exp(score − m), as it stands in the sums; null: not read
 * @property {boolean} now whether it is of the tile that is being read
 */

/** @param {() => void} redraw when the width has changed */
export function drawing(redraw) {
  const picture = fitted(redraw);
  return {
    element: picture.element,
    /**
     * @param {Key[]} keys
     * @param {number} size of a tile
     */
    update(keys, size) {
      picture.height = HEIGHT;
      const step = (picture.width - 8) / keys.length;
      const wide = Math.min(0.5 * step, 60);
      const middle = (/** @type {number} */ i) => 4 + (i + 0.5) * step;
      const most = Math.max(1, ...keys.map(({ power }) => power ?? 0));
      const tiles = Array.from({ length: keys.length / size }, (_, tile) => svg("rect", {
        class: keys[tile * size].now ? "tiles-tile now" : "tiles-tile",
        x: 4 + tile * size * step + 3, width: size * step - 6, y: 4, height: HEIGHT - 8, rx: 5,
      }));
      const bars = keys.flatMap(({ score, value, power, now }, i) => {
        const high = power === null ? 0 : (power / most) * (BOTTOM - TOP - 20);
        const text = (/** @type {string} */ kind, /** @type {number} */ y,
          /** @type {string} */ words) => svg("text", { class: kind, x: middle(i), y,
          "text-anchor": "middle", text: words });
        return [
          text("strong", TOP - 16, `s = ${fixed(score, 0)}`),
          svg("rect", { class: now ? "tiles-power now" : "tiles-power", x: middle(i) - wide / 2,
            width: wide, y: BOTTOM - high, height: high }),
          text("number halo", BOTTOM - high - 6, power === null ? "?" : fixed(power, 4)),
          text("soft", BOTTOM + 20, `v = ${fixed(value, 0)}`),
        ];
      });
      picture.element.replaceChildren(...tiles,
        svg("path", { class: "tiles-axis", d: `M4 ${BOTTOM}H${picture.width - 4}` }), ...bars);
    },
  };
}
