// One head, large: its map with the tokens at both sides, the row that is looked at in
// words, and all its weights as a table.

import { h, set } from "../ui/dom.js";
import { fixed, percent } from "../ui/format.js";
import { numbers } from "../ui/table.js";
import { drawMap, spoken } from "./maps.js";
import { token } from "./tokens.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./tokens.js").Token} Token */
/** @typedef {import("../engine/linear.js").Matrix} Matrix */

/**
 * What a head reads and writes, with its weights.
 * @typedef {Object} Head
 * @property {"encoder" | "masked" | "cross"} kind
 * @property {Token[]} rows one a query; of the decoder, what is written there
 * @property {Token[]} columns one a key
 * @property {Matrix} weights (T, S)
 * @property {number} row the query that is looked at
 */

/**
 * Find the picked head in what was recorded.
 * @param {View} view
 * @param {string} [head]
 * @returns {Head | null}
 */
export function headOf(view, head = view.state.head) {
  const { record, source, shown, model, count, row, sourceRow } = view;
  const [name, at] = head.split(":");
  if (!record || !count) return null;
  const weights = record.attention(name).weights[Number(at)];
  if (name.startsWith("encoder")) {
    return { kind: "encoder", rows: source, columns: source, weights, row: sourceRow };
  }
  const rows = shown.tokens.slice(0, count);
  if (name.endsWith("cross_attention")) return { kind: "cross", rows, columns: source, weights, row };
  const start = token(model, model.vocabulary.bosId);
  return { kind: "masked", rows, columns: [start, ...rows.slice(0, -1)], weights, row };
}

/**
 * Make the view of one head.
 * @param {{pickRow: (head: Head, row: number) => void, toggle: (heads: string[]) => void}} given
 */
export function headView({ pickRow, toggle }) {
  const title = h("h2", { class: "live-title" });
  const off = h("button", { type: "button", class: "live-button" });
  const canvas = h("canvas", { "aria-hidden": "true" });
  const frame = h("span", { class: "head-frame", "aria-hidden": "true" });
  const rows = h("div", { class: "head-rows", role: "group", "aria-label": "Rows of the map" });
  const columns = h("div", { class: "head-columns", "aria-hidden": "true" });
  const grid = h("div", { class: "head-map" }, columns, rows,
    h("div", { class: "head-cells" }, canvas, frame));
  const words = h("p", { class: "head-words" });
  const table = numbers({ caption: "Weights: a row for each query, a column for each key" });
  /** @type {Head | null} */
  let head = null;
  let name = "";
  off.addEventListener("click", () => toggle([name]));
  canvas.addEventListener("click", (event) => {
    if (!head) return;
    const box = canvas.getBoundingClientRect();
    pickRow(head, Math.min(head.rows.length - 1,
      Math.floor(((event.clientY - box.top) / box.height) * head.rows.length)));
  });
  rows.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || !head || !head.rows[head.row + by]) return;
    event.preventDefault();
    pickRow(head, head.row + by);
    /** @type {HTMLElement | undefined} */ (rows.children[head.row])?.focus();
  });

  return {
    element: h("section", { class: "head-view" },
      h("div", { class: "head-top" }, title, off), words, grid, table.element),
    /** @param {View} view */
    update(view) {
      name = view.state.head;
      head = headOf(view);
      title.textContent = spoken(name);
      const isOff = view.state.off.includes(name);
      off.textContent = isOff ? "Switch this head on" : "Switch this head off";
      set(grid, { hidden: !head });
      set(table.element, { hidden: !head });
      if (!head) {
        words.textContent = "Nothing is written yet.";
        return;
      }
      const { rows: queries, columns: keys, weights, row } = head;
      drawMap(canvas, weights);
      labels(columns, keys, (key) => h("span", {}, h("bdi", { text: key.mark })));
      labels(rows, queries, (query, t) => h("button", {
        type: "button", class: "head-row",
        "aria-current": t === row ? "true" : false, tabindex: t === row ? 0 : -1,
        onclick: () => head && pickRow(head, t),
      }, h("bdi", { "aria-hidden": "true", text: query.mark }),
      h("span", { class: "live-said", text: `Row of ${query.name}` })));
      frame.style.top = `${(100 * row) / queries.length}%`;
      frame.style.height = `${100 / queries.length}%`;
      grid.style.setProperty("--rows", String(queries.length));
      grid.style.setProperty("--columns", String(keys.length));
      words.textContent = sentence(head, isOff);
      table.update({
        columns: ["", ...keys.map((key) => key.mark)],
        rows: queries.map((query, t) => [query.mark, ...[...weights.row(t)].map((w) => fixed(w, 3))]),
      });
    },
  };
}

/**
 * @param {HTMLElement} box
 * @param {Token[]} tokens
 * @param {(token: Token, i: number) => HTMLElement} make
 */
function labels(box, tokens, make) {
  const focused = [...box.children].indexOf(/** @type {Element} */ (document.activeElement));
  box.replaceChildren(...tokens.map(make));
  if (focused >= 0) /** @type {HTMLElement | undefined} */ (box.children[focused])?.focus();
}

/**
 * The largest weights of a row, in words.
 * @param {Head} head
 * @param {boolean} isOff
 */
export function sentence({ kind, rows, columns, weights, row }, isOff) {
  const values = [...weights.row(row)];
  const order = values.map((weight, s) => ({ weight, s }))
    .sort((a, b) => b.weight - a.weight).filter(({ weight }, i) => i < 3 && weight >= 0.05);
  const said = order.map(({ weight, s }) =>
    `${percent(weight)} to ${columns[s].name} (${s + 1})`);
  const listed = said.length > 1 ? `${said.slice(0, -1).join(", ")} and ${said.at(-1)}` : said[0];
  const who = {
    encoder: `The token ${rows[row].name} (${row + 1}) gives`,
    masked: `To write ${rows[row].name} (${row + 1}), of all it has read, it gives`,
    cross: `To write ${rows[row].name} (${row + 1}) it gives`,
  }[kind];
  const sum = listed ? `${who} ${listed}` : `${who} less than 5 % to each token`;
  return `${sum}.${isOff ? " But it is switched off: nothing of that arrives." : ""}`;
}
