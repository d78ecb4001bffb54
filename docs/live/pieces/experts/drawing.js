// Tokens in columns, experts in rows: who goes where, and beside each expert its load.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";
import { percent } from "../../ui/format.js";

const [TOP, ROW, NAME] = [24, 24, 20];
const MOST = 0.5; // the load of a bar that fills its place: with two experts of each token

/** @param {() => void} redraw when the width has changed */
export function drawing(redraw) {
  const picture = fitted(redraw);
  return {
    element: picture.element,
    /**
     * @param {number[][]} chosen experts of each token
     * @param {number[]} loads the fraction of the choices that each expert got
     * @param {number} reach of the bars
     */
    update(chosen, loads, reach = MOST) {
      const high = TOP + ROW * loads.length;
      picture.height = high + 6;
      const split = NAME + (picture.width - NAME) * 0.58; // cells to the left, bars to the right
      const step = (split - NAME) / chosen.length;
      const long = picture.width - split - 60;
      const places = loads.map((_, expert) => TOP + expert * ROW);
      const dots = chosen.map((of, token) => of.map((expert) =>
        `M${(NAME + token * step).toFixed(2)} ${places[expert] + 3}` +
        `h${(0.8 * step).toFixed(2)}v${ROW - 7}h${(-0.8 * step).toFixed(2)}Z`).join("")).join("");
      const mean = split + 14 + long / loads.length / reach;
      picture.element.replaceChildren(
        svg("text", { class: "soft", x: NAME, y: 12, text: `${chosen.length} tokens →` }),
        svg("text", { class: "soft", x: split + 14, y: 12, text: "load" }),
        ...loads.flatMap((load, expert) => [
          svg("rect", { class: "experts-row", x: NAME, width: split - NAME, y: places[expert] + 1,
            height: ROW - 3 }),
          svg("text", { class: load < 0.01 ? "experts-dead" : "soft", x: NAME - 6,
            y: places[expert] + 16, "text-anchor": "end", text: expert }),
          svg("rect", { class: "experts-load", x: split + 14, y: places[expert] + 3,
            width: Math.max((load / reach) * long, 0.5), height: ROW - 7 }),
          svg("text", { class: load < 0.01 ? "number experts-dead" : "number",
            x: split + 20 + Math.max((load / reach) * long, mean - split - 14),
            y: places[expert] + 16, text: percent(load) }),
        ]),
        svg("path", { class: "experts-chosen", d: dots }),
        svg("path", { class: "experts-mean", d: `M${mean} ${TOP - 4}V${high + 2}` }));
    },
  };
}
