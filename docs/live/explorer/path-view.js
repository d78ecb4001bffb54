// The path of a token as a list that unfolds: numbers on the left, the line that computes
// them on the right. The line is lit while its step is looked at.

import { h, set } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { paint } from "../ui/colours.js";
import { stages } from "./path.js";
import { drawStrip, largest, strip, table } from "./strip.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./path.js").Part} Part */
/** @typedef {import("./path.js").PathStep} PathStep */
/** @typedef {{file: string, first: number, last: number, code: string, url: string}} Quote */

/** Where chapters lie, seen from this folder. */
const CHAPTERS = new URL("../../chapters/", import.meta.url);

/**
 * Make the view.
 * @param {{quotes: Record<string, Quote>, open: (stage: string) => void,
 *   move: (by: number) => void, switchSide: () => void}} given
 */
export function pathView({ quotes, open, move, switchSide }) {
  const title = h("h2", { class: "live-title" });
  const back = arrow("◂", "The token before", () => move(-1));
  const on = arrow("▸", "The token after", () => move(1));
  const side = h("button", { type: "button", class: "live-button", onclick: switchSide });
  const note = h("p", { class: "path-note" });
  const list = h("ol", { class: "path" });
  /** @type {Map<string, {item: HTMLLIElement, button: HTMLButtonElement, canvas: HTMLCanvasElement, body: HTMLElement}>} */
  let shown = new Map();
  let drawn = "";
  const looking = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) target.classList.toggle("looked-at", isIntersecting);
  }, { rootMargin: "-42% 0px -42% 0px" });

  return {
    element: h("section", { class: "path-view" },
      h("div", { class: "head-top" }, title, h("span", { class: "path-moves" }, side, back, on)), note, list),
    /** @param {View} view */
    update(view) {
      const { state, source, shown: writing, sourceRow, row, count, model } = view;
      const inSource = state.token.startsWith("source");
      const all = stages(view);
      const one = inSource ? source[sourceRow] : writing.tokens[row];
      title.textContent = !one || !count ? "Follow one token"
        : inSource ? `Follow one token: ${one.name}, read at ${sourceRow + 1}`
        : `Follow one token: the one that writes ${one.name}, at ${row + 1}`;
      side.textContent = inSource ? "follow a written one" : "follow one of the source";
      const [at, last] = inSource ? [sourceRow, source.length - 1] : [row, count - 1];
      set(back, { disabled: at <= 0 });
      set(on, { disabled: at >= last });
      const changed = row < count - 1 && !inSource && !(state.causal && model.trained.causal);
      note.textContent = all.length === 0 ? "Nothing is written yet."
        : `Its vector of ${model.config.dModel} numbers, stage by stage. Open a stage to see what is computed.` +
          (changed ? " Without the mask this token also sees what was written after it, so these numbers are not those with which it was written." : "");
      const names = all.map((stage) => stage.id).join(" ");
      if (names !== drawn) {
        shown = new Map(all.map((stage) => [stage.id, make(stage.id, stage.title)]));
        list.replaceChildren(...[...shown.values()].map(({ item }) => item));
        drawn = names;
      }
      looking.disconnect();
      for (const stage of all) {
        const item = shown.get(stage.id);
        if (!item) continue;
        const isOpen = stage.id === state.stage;
        drawStrip(item.canvas, stage.after);
        set(item.button, { "aria-expanded": isOpen ? "true" : "false" });
        item.item.classList.toggle("open", isOpen);
        set(item.body, { hidden: !isOpen });
        const chapter = new URL(`${stage.chapter}/`, CHAPTERS).href;
        item.body.replaceChildren(...(isOpen
          ? [...stage.steps().map((step) => stepView(step)),
            h("li", { class: "path-chapter" }, h("a", { href: chapter, text: "The chapter about this" }))]
          : []));
        for (const child of item.body.children) looking.observe(child);
      }
    },
  };

  /** @param {string} id @param {string} name */
  function make(id, name) {
    const canvas = h("canvas", { class: "path-after", "aria-hidden": "true" });
    const body = h("ol", { class: "path-steps" });
    const button = h("button", {
      type: "button", class: "path-stage", "data-stage": id,
      onclick: () => open(button.getAttribute("aria-expanded") === "true" ? "none" : id),
    }, h("span", { text: name }), canvas);
    return { item: h("li", { class: "path-item" }, button, body), button, canvas, body };
  }

  /** @param {PathStep} step */
  function stepView({ title, text, quotes: names, parts }) {
    const code = names.map((name) => quotes[name]).filter(Boolean).map((quote) =>
      h("figure", { class: "path-quote" },
        h("figcaption", {}, h("a", { href: quote.url, text: `${quote.file.replace("tformer/", "")}, line ${quote.first}` })),
        h("pre", { tabindex: 0, role: "group", "aria-label": `line ${quote.first} of ${quote.file}` }, h("code", { text: quote.code }))));
    return h("li", { class: "path-step" },
      h("div", { class: "path-numbers" }, h("p", { class: "path-title", text: title }),
        h("p", { class: "path-text", text }), ...parts.map(partView)),
      h("div", { class: "path-code" }, ...code));
  }
}

/**
 * A button with a sign on it, and its name for whoever does not see the sign.
 * @param {string} sign
 * @param {string} name
 * @param {() => void} on
 */
export function arrow(sign, name, on) {
  return h("button", { type: "button", class: "live-button", title: name, onclick: on },
    h("span", { "aria-hidden": "true", text: sign }), h("span", { class: "live-said", text: name }));
}

/** @param {Part} part @returns {HTMLElement} */
function partView(part) {
  if (part.kind === "vector") return strip(part);
  if (part.kind === "vectors") {
    const most = Math.max(...part.rows.map(largest));
    return h("div", { class: "strip" }, h("div", { class: "strip-top" },
      h("span", { class: "strip-name", text: part.name })),
    h("ol", { class: "vectors", "aria-hidden": "true" }, ...part.tokens.map(({ mark }, s) => {
      const canvas = h("canvas");
      drawStrip(canvas, part.rows[s], most);
      return h("li", {}, h("bdi", { text: mark }), canvas);
    })), table(part.name, part.tokens.map(({ mark }, s) => ({ name: mark, values: part.rows[s] }))));
  }
  const most = part.most ?? Math.max(...Array.from(part.values, (x) => (Number.isFinite(x) ? Math.abs(x) : 0)));
  return h("div", { class: "strip" }, h("span", { class: "strip-name", text: part.name }),
    h("ol", { class: "numbers", "data-name": part.name }, ...part.tokens.map(({ mark, name }, s) => {
      const value = part.values[s];
      const cell = h("li", { class: "live-cell" },
        h("bdi", { "aria-hidden": "true", text: mark }), h("span", { class: "live-said", text: `${name}: ` }),
        h("span", { class: "number", text: fixed(value, part.digits ?? 2) }));
      paint(cell, Number.isFinite(value) ? value : 0, most);
      cell.classList.toggle("hidden-score", value === -Infinity);
      return cell;
    })));
}
