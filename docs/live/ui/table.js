// The numbers of a picture as a table: what a screen reader reads instead of it.

import { h } from "./dom.js";

/** @typedef {{columns: string[], rows: (string | number)[][]}} Content */

/**
 * Make a folded table. The first cell of each row is its heading.
 * @param {{caption: string, summary?: string}} given
 * @returns {{element: HTMLDetailsElement, update: (content: Content) => void}}
 */
export function numbers({ caption, summary = "Numbers as a table" }) {
  const body = h("tbody");
  const head = h("thead");
  const table = h("table", { class: "live-table" }, h("caption", { text: caption }), head, body);
  // It scrolls on a phone: the keyboard must reach it.
  const box = h("div", {
    class: "live-scroll", role: "group", "aria-label": caption, tabindex: 0,
  }, table);
  return {
    element: h("details", { class: "live-numbers" }, h("summary", { text: summary }), box),
    update({ columns, rows }) {
      head.replaceChildren(h("tr", {}, ...columns.map((name) =>
        h(name ? "th" : "td", name ? { scope: "col", text: name } : {}))));
      body.replaceChildren(...rows.map(([name, ...cells]) => h("tr", {},
        h("th", { scope: "row", text: name }),
        ...cells.map((cell) => h("td", { text: cell })))));
    },
  };
}
