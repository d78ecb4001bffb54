// The picture of <live-heads>: numbered cells that move from tokens to heads and back.

import { h, set, svg } from "../../ui/dom.js";

const COLOURS = ["blue", "orange", "green", "purple", "red", "brown", "pink", "gray"];
const CELL = 40; // pixels, where there is room
const TOP = 30;
const NARROW = 450; // pixels of the piece

/**
 * @typedef {{order: number[], tokens: number, width: number, heads: number,
 *   split: boolean, still: boolean}} State
 *   `order` says which entry of the tokens stands at each place, in the order of memory
 */

/** @returns {{element: HTMLElement, update: (state: State) => void}} */
export function drawing() {
  /** @type {SVGGElement[]} */
  const cells = [];
  const labels = svg("g");
  const inner = svg("g");
  const drawn = svg("svg", { "aria-hidden": true }, labels, inner);
  const element = h("div", { class: "heads-drawing" }, drawn);
  /** @type {State | null} */
  let last = null;
  new ResizeObserver(() => last && draw({ ...last, still: true })).observe(element);

  /** @param {State} state */
  function draw({ order, tokens, width, heads, split, still }) {
    const Dh = width / heads;
    const room = element.clientWidth || 640;
    const narrow = room < NARROW;
    const left = narrow ? 46 : 72;
    const widest = heads > 1 ? Math.min(narrow ? 8 : 22, (narrow ? 50 : 90) / heads) : 0;
    const size = Math.min(CELL, (room - left - (heads - 1) * widest - 2) / width);
    const gap = split ? widest : 0;
    const shown = left + width * size + (heads - 1) * gap + 2;
    const high = TOP + tokens * size + 4;
    set(drawn, { viewBox: `0 0 ${shown} ${high}`, width: shown, height: high });
    if (cells.length !== order.length) {
      cells.splice(0, cells.length, ...order.map((_, n) => cell(n)));
      inner.replaceChildren(...cells);
    }
    order.forEach((from, to) => {
      const [head, row, i] = split
        ? [Math.floor(to / (tokens * Dh)), Math.floor(to / Dh) % tokens, to % Dh]
        : [0, Math.floor(to / width), to % width];
      const owner = Math.floor((from % width) / Dh);
      const lost = !split && from !== to;
      const colour = COLOURS[owner % COLOURS.length];
      set(cells[from], { class: `heads-cell ${colour}${lost ? " lost" : ""}` });
      resize(cells[from], size);
      const x = left + (head * Dh + i) * size + head * gap;
      cells[from].style.transform = `translate(${x}px, ${TOP + row * size}px)`;
      cells[from].style.transition = still ? "none" : "";
      cells[from].style.transitionDelay = `${(from % width) * 20}ms`;
    });
    const tight = Dh * size < 50;
    labels.replaceChildren(
      ...Array.from({ length: tokens }, (_, row) => svg("text", {
        class: "soft", x: left - 8, y: TOP + (row + 0.5) * size + 4,
        "text-anchor": "end", text: `row ${row}`,
      })),
      ...Array.from({ length: split ? heads : 0 }, (_, head) => svg("text", {
        class: `strong heads-name ${COLOURS[head % COLOURS.length]}`,
        x: left + (head + 0.5) * Dh * size + head * gap, y: TOP - 10,
        "text-anchor": "middle", text: tight ? head + 1 : `head ${head + 1}`,
      })));
  }

  return {
    element,
    update(state) {
      last = state;
      draw(state);
    },
  };
}

/** @param {number} n the number it holds */
function cell(n) {
  return svg("g", {}, svg("rect", { x: 1, y: 1, rx: 4 }),
    svg("text", { "text-anchor": "middle", text: n }));
}

/**
 * @param {SVGGElement} group
 * @param {number} size
 */
function resize(group, size) {
  set(group.children[0], { width: size - 2, height: size - 2 });
  set(group.children[1], { x: size / 2, y: size / 2 + 5 });
}
