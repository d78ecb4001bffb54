// A row of the table of positions: a coloured cell for each number, a pair for a clock.

import { paint } from "../../ui/colours.js";
import { h } from "../../ui/dom.js";
import { fixed } from "../../ui/format.js";

/**
 * @returns {{element: HTMLElement, update: (row: number[], colours: string[]) => void}}
 */
export function row() {
  const names = h("tr");
  const values = h("tr");
  return {
    element: h("table", { class: "positions-row" },
      h("caption", { class: "live-said", text: "The row of this position" }),
      h("thead", {}, names), h("tbody", {}, values)),
    update(given, colours) {
      names.replaceChildren(...given.map((_, column) => h("th", {
        scope: "col", class: colours[column >> 1], text: column % 2 ? "cos" : "sin",
      })));
      values.replaceChildren(...given.map((value, column) => {
        const cell = h("td", {
          class: `live-cell ${colours[column >> 1]}`, text: fixed(value, 4),
        });
        paint(cell, value);
        return cell;
      }));
    },
  };
}
