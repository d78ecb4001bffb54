// The plane of <live-attention>: arrows that are dragged, and lines of equal score.

import { set, svg } from "../../ui/dom.js";
import { fixed } from "../../ui/format.js";
import { handle, inDrawing } from "../../ui/handle.js";

/** @typedef {import("../../ui/handle.js").Point} Point */
/** @typedef {import("../attention.js").Key} Key */

const REACH = 3; // the plane goes from -3 to 3 in both places
const UNIT = 44; // pixels
const MIDDLE = REACH * UNIT + 14;
const STEP = 0.1;

/** @param {Point} point */
const place = ({ x, y }) => ({ x: MIDDLE + x * UNIT, y: MIDDLE - y * UNIT });
/** @param {number} x */
const inside = (x) =>
  Math.round(Math.min(REACH, Math.max(-REACH, x)) / STEP) * STEP + 0; // no minus zero
/** @param {Point} point */
const spoken = ({ x, y }) => `living ${fixed(x, 1)}, noun ${fixed(y, 1)}`;

/**
 * @param {{query: Point, keys: Key[]}} example its points are moved
 * @param {() => void} moved
 * @returns {{element: SVGSVGElement,
 *   update: (weights: number[], divisor: number) => void}}
 */
export function plane(example, moved) {
  const size = 2 * MIDDLE;
  const levels = svg("g", { class: "attention-levels" });
  const feet = svg("g", { class: "attention-feet" });
  const element = svg("svg", { class: "attention-plane", viewBox: `0 0 ${size} ${size}` },
    svg("rect", { class: "attention-paper", x: 1, y: 1, width: size - 2, height: size - 2, rx: 6 }),
    levels, axes(), feet);
  const toPlane = inDrawing(element);
  const arrows = [
    arrow("it", "query: it", "ink", example.query),
    ...example.keys.map((key) => arrow(key.word, `key: ${key.word}`, key.colour, key.at)),
  ];
  const [ofQuery, ...ofKeys] = arrows;
  element.append(...arrows.map((each) => each.shaft), ...ofKeys.map((x) => x.handle.element),
    ofQuery.handle.element);

  /**
   * @param {string} word
   * @param {string} label
   * @param {string} colour
   * @param {Point} at
   */
  function arrow(word, label, colour, at) {
    const shaft = svg("path", { class: `attention-shaft ${colour}` });
    const name = svg("text", { class: "strong", text: word });
    const tip = svg("circle", { class: "tip", r: 7 });
    const grip = handle({
      label, step: STEP, least: -REACH, most: REACH,
      point: () => at,
      text: () => spoken(at),
      toPoint: (x, y) => {
        const point = toPlane(x, y);
        return { x: (point.x - MIDDLE) / UNIT, y: (MIDDLE - point.y) / UNIT };
      },
      move: ({ x, y }) => {
        Object.assign(at, { x: inside(x), y: inside(y) });
        moved();
      },
    });
    set(grip.element, { class: `live-handle attention-tip ${colour}` });
    grip.element.append(svg("circle", { class: "ring", r: 17 }), tip, name);
    return {
      shaft,
      handle: grip,
      /** @param {number} radius */
      draw(radius) {
        const { x, y } = place(at);
        const long = Math.hypot(at.x, at.y) * UNIT;
        set(shaft, { d: long < 1 ? "" : `M${MIDDLE} ${MIDDLE}L${x} ${y}` });
        set(grip.element, { transform: `translate(${x} ${y})` });
        set(tip, { r: radius });
        const below = at.y < -0.05 || long < 1;
        const left = at.x > REACH - 1 && word.length > 3;
        set(name, {
          x: left ? -radius - 4 : radius + 4, y: below ? radius + 12 : -radius + 2,
          "text-anchor": left ? "end" : "start",
        });
        grip.update();
      },
    };
  }

  return {
    element,
    update(weights, divisor) {
      ofQuery.draw(7);
      ofKeys.forEach((each, i) => each.draw(Math.max(3, 18 * Math.sqrt(weights[i]))));
      levels.replaceChildren(...levelLines(example.query, divisor));
      feet.replaceChildren(...example.keys.map((key) => foot(example.query, key)));
    },
  };
}

function axes() {
  const end = 2 * MIDDLE;
  const group = svg("g", { class: "attention-axes" },
    svg("path", { d: `M8 ${MIDDLE}H${end - 8}M${MIDDLE} ${end - 8}V8` }),
    svg("text", { class: "soft", x: end - 10, y: MIDDLE + 17, "text-anchor": "end", text: "living →" }),
    svg("text", { class: "soft", x: MIDDLE - 8, y: 22, "text-anchor": "end", text: "noun ↑" }));
  for (let i = -REACH + 1; i < REACH; i += 1) {
    if (i) group.append(svg("path", {
      d: `M${MIDDLE + i * UNIT} ${MIDDLE - 3}v6M${MIDDLE - 3} ${MIDDLE + i * UNIT}h6`,
    }));
  }
  return group;
}

/**
 * Lines on which a key's divided score is a whole number: across the query's direction.
 * @param {Point} query
 * @param {number} divisor
 */
function levelLines(query, divisor) {
  const long = Math.hypot(query.x, query.y);
  const apart = divisor / (long || 1); // in units of the plane
  if (!long || apart * UNIT < 3) return [];
  const along = { x: query.x / long, y: query.y / long };
  const lines = [];
  const far = REACH * Math.SQRT2;
  for (let level = -Math.floor(far / apart); level * apart <= far; level += 1) {
    const from = { x: along.x * level * apart, y: along.y * level * apart };
    const ends = clipped(from, { x: -along.y, y: along.x });
    if (!ends) continue;
    const [a, b] = ends.map(place);
    lines.push(svg("path", { class: level ? "" : "zero", d: `M${a.x} ${a.y}L${b.x} ${b.y}` }));
  }
  return lines;
}

/**
 * Return where a line through a point leaves the plane, or null where it misses it.
 * @param {Point} from
 * @param {Point} along
 * @returns {[Point, Point] | null}
 */
function clipped(from, along) {
  let [low, high] = [-Infinity, Infinity];
  const edge = REACH + 10 / UNIT;
  for (const axis of /** @type {const} */ (["x", "y"])) {
    if (Math.abs(along[axis]) < 1e-9) {
      if (Math.abs(from[axis]) > edge) return null;
      continue;
    }
    const ends = [-edge, edge].map((side) => (side - from[axis]) / along[axis]);
    low = Math.max(low, Math.min(...ends));
    high = Math.min(high, Math.max(...ends));
  }
  if (low >= high) return null;
  /** @param {number} t */
  const at = (t) => ({ x: from.x + t * along.x, y: from.y + t * along.y });
  return [at(low), at(high)];
}

/**
 * The dotted line from a key to the query's line: where it meets it, the score is read.
 * @param {Point} query
 * @param {Key} key
 */
function foot(query, { at, colour }) {
  const square = query.x ** 2 + query.y ** 2;
  if (!square) return svg("path");
  const part = (query.x * at.x + query.y * at.y) / square;
  const [from, to] = [place(at), place({ x: part * query.x, y: part * query.y })];
  return svg("g", { class: colour },
    svg("path", { d: `M${from.x} ${from.y}L${to.x} ${to.y}` }),
    svg("circle", { cx: to.x, cy: to.y, r: 2.5 }));
}
