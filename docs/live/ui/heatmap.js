// A heat map of a matrix: a grid of cells, each coloured by its value.

import { paint } from "./colours.js";
import { set, svg } from "./dom.js";

/**
 * Make a heat map as an SVG without labels for a screen reader: put a table beside it.
 * @param {{rows: string[], columns: string[], cell?: number, label?: string,
 *   on?: (row: number, column: number) => void}} given
 *   the names of rows and columns, the pixels of a cell, what the picture shows, and
 *   what a click on a cell does.
 * @returns {{element: SVGSVGElement, cells: SVGRectElement[][],
 *   update: (values: (row: number, column: number) => number, most?: number) => void,
 *   mark: (row: number | null, column: number | null) => void}}
 */
export function heatmap({ rows, columns, cell = 24, label = "", on }) {
  const left = 8 + 8.5 * Math.max(...rows.map((name) => [...name].length));
  const top = 22;
  const element = svg("svg", {
    class: "live-heatmap",
    viewBox: `0 0 ${left + columns.length * cell + 2} ${top + rows.length * cell + 2}`,
    width: left + columns.length * cell + 2,
    height: top + rows.length * cell + 2,
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  });
  const cells = rows.map((name, row) => {
    element.append(svg("text", {
      class: "live-row-name", x: left - 6, y: top + (row + 0.5) * cell, text: name,
    }));
    return columns.map((_, column) => {
      const rect = svg("rect", {
        class: "live-cell", x: left + column * cell, y: top + row * cell,
        width: cell - 2, height: cell - 2, rx: 2,
      });
      if (on) rect.addEventListener("click", () => on(row, column));
      element.append(rect);
      return rect;
    });
  });
  columns.forEach((name, column) => element.append(svg("text", {
    class: "live-column-name", x: left + (column + 0.5) * cell - 1, y: top - 7, text: name,
  })));
  const frame = svg("rect", { class: "live-mark", rx: 3 });
  element.append(frame);
  return {
    element,
    cells,
    update(values, most = 1) {
      cells.forEach((line, row) => line.forEach((rect, column) =>
        paint(rect, values(row, column), most)));
    },
    mark(row, column) {
      if (row === null && column === null) {
        frame.removeAttribute("width");
        return;
      }
      set(frame, {
        x: left + (column ?? 0) * cell - 2, y: top + (row ?? 0) * cell - 2,
        width: (column === null ? columns.length : 1) * cell + 2,
        height: (row === null ? rows.length : 1) * cell + 2,
      });
    },
  };
}
