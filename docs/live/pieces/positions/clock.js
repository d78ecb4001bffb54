// A clock with one hand; the reader may take the hand and turn it.

import { h, set, svg } from "../../ui/dom.js";
import { grouped } from "../../ui/format.js";
import { inDrawing } from "../../ui/handle.js";

const RADIUS = 46;
const HAND = 39;

/**
 * @param {{colour: string, turn: number, number: number,
 *   on: (places: number) => void}} given
 *   `turn` is the count of positions for one turn; `on` is called with the positions by
 *   which the hand was turned, a whole number
 * @returns {{element: HTMLElement, update: (angle: number) => void}}
 */
export function clock({ colour, turn, number, on }) {
  const hand = svg("path", { class: "positions-hand" });
  const shadow = svg("path", { class: "positions-shadow" });
  const tip = svg("circle", { class: "positions-tip", r: 5 });
  const face = svg("svg", { viewBox: "-50 -50 100 100", "aria-hidden": true },
    svg("circle", { class: "positions-face", r: RADIUS }),
    svg("path", { class: "positions-cross", d: `M${-RADIUS} 0H${RADIUS}M0 ${-RADIUS}V${RADIUS}` }),
    shadow, hand, svg("circle", { class: "positions-tip", r: 3.5 }), tip);
  const toFace = inDrawing(face);
  let [held, left] = [0, 0]; // where the pointer was, and turns too small for a position

  /** @param {PointerEvent} event */
  const angleOf = (event) => {
    const { x, y } = toFace(event.clientX, event.clientY);
    return Math.atan2(x, -y);
  };
  face.addEventListener("pointerdown", (event) => {
    face.setPointerCapture(event.pointerId);
    [held, left] = [angleOf(event), 0];
    event.preventDefault();
  });
  face.addEventListener("pointermove", (event) => {
    if (!face.hasPointerCapture(event.pointerId)) return;
    const now = angleOf(event);
    const by = Math.atan2(Math.sin(now - held), Math.cos(now - held));
    left += (by / (2 * Math.PI)) * turn;
    held = now;
    const places = Math.trunc(left);
    left -= places;
    if (places) on(places);
  });
  const element = h("div", { class: `positions-clock ${colour}` }, face,
    h("p", {}, h("b", { text: `clock ${number}` }), ` a turn in ${grouped(turn)} places`));
  return {
    element,
    update(angle) {
      const [x, y] = [HAND * Math.sin(angle), -HAND * Math.cos(angle)];
      set(hand, { d: `M0 0L${x} ${y}` });
      set(shadow, { d: `M${x} 0V${y}M0 ${y}H${x}` });
      set(tip, { cx: x, cy: y });
    },
  };
}
