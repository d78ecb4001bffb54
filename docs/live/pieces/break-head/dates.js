// The first click: a date. Each of these is broken by at least one head, and not all by
// the same; a test asks the model.

import { h, set } from "../../ui/dom.js";

/** @type {readonly {text: string, language: string}[]} */
export const DATES = [
  { text: "22.11.2026", language: "de" },
  { text: "July 20th, 1969", language: "en" },
  { text: "25 December 2025", language: "en" },
];

/**
 * Make the dates to take, and a field for the reader's own.
 * @param {{on: (text: string) => void}} given
 */
export function dates({ on }) {
  const note = h("p", { class: "entry-note bet-note", role: "status", hidden: true });
  const chips = DATES.map(({ text, language }) => h("button", {
    type: "button", class: "entry-chip bet-date", lang: language, text, onclick: () => on(text),
  }));
  const own = h("input", {
    class: "bet-own", type: "text", dir: "auto", autocomplete: "off", spellcheck: "false",
    enterkeyhint: "go", placeholder: "or your own: 3 May 1979",
    "aria-label": "Your own date",
  });
  const take = () => own.value.trim() && on(own.value);
  let taken = "";
  own.addEventListener("change", () => own.value !== taken && take());
  own.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    taken = own.value; // `change` would ask again
    take();
  });
  return {
    element: h("div", { class: "entry-chips", role: "group", "aria-label": "1. A date" },
      ...chips, own, note),
    /** @param {string} text */
    show(text) {
      let known = false;
      for (const chip of chips) {
        const picked = chip.textContent === text;
        known ||= picked;
        set(chip, { "aria-pressed": picked ? "true" : "false" });
      }
      own.value = known ? "" : text;
      taken = own.value;
    },
    /** @param {string} text what is unlike the training, in a sentence */
    note(text) {
      note.textContent = text;
      set(note, { hidden: !text });
    },
  };
}
