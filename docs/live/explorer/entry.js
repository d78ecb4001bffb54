// Where the reader types a date, or takes an example.

import { h, set, uniqueId } from "../ui/dom.js";

/** @typedef {import("./runs.js").Reading} Reading */

// Dates that are one tap away. The first is the book's; the days of the others are of the
// test, which the model has not seen in training in any language.

/** @type {readonly {text: string, language: string}[]} */
export const EXAMPLES = [
  { text: "jeudi 3 mai 1979", language: "fr" },
  { text: "August 4, 2024", language: "en" },
  { text: "3.11.2003", language: "de" },
  { text: "3 февраля 1974 г.", language: "ru" },
  { text: "25 Απριλίου 1914", language: "el" },
  { text: "May 20th, 2037", language: "en" },
];

const PAUSE = 250; // ms after the last key, before the model reads

/**
 * Make the field with what is said of its text, and examples.
 * @param {{text: string, onText: (text: string, how: "typed" | "example") => void}} given
 */
export function entry({ text, onText }) {
  const id = uniqueId("text");
  const note = h("p", { class: "entry-note", id: `${id}-note`, role: "status" });
  const input = h("input", {
    id, class: "entry-input", type: "text", dir: "auto", autocomplete: "off",
    autocapitalize: "off", spellcheck: "false", enterkeyhint: "go", "aria-describedby": note.id,
  });
  input.value = text;
  let waiting = 0;
  const send = () => {
    window.clearTimeout(waiting);
    onText(input.value, "typed");
  };
  input.addEventListener("input", () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(send, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) send();
  });
  const chips = EXAMPLES.map((example) => h("button", {
    type: "button", class: "entry-chip", lang: example.language, text: example.text,
    onclick: () => {
      window.clearTimeout(waiting);
      input.value = example.text;
      onText(example.text, "example");
    },
  }));
  const element = h("div", { class: "entry" },
    h("label", { for: id, class: "entry-label", text: "A date, in any of 23 languages" }),
    input, note);
  return {
    element,
    /** Stand where there is room: what is typed must be answered in sight. */
    examples: h("div", { class: "entry-chips", role: "group", "aria-label": "Examples" }, ...chips),
    input,
    /** @param {string} typed */
    show(typed) {
      if (document.activeElement !== input && input.value !== typed) input.value = typed;
    },
    /** @param {Reading} reading */
    update(reading) {
      const text = remark(reading);
      if (note.textContent !== text) note.textContent = text;
      set(note, { hidden: !text });
      for (const chip of chips) {
        set(chip, { "aria-pressed": chip.textContent === reading.text ? "true" : "false" });
      }
    },
  };
}

/**
 * Say in words what the model cannot read, or has not learned to.
 * @param {Reading} reading
 */
export function remark({ text, cut, unknown, unlike }) {
  if (!text) return "The field is empty: the model reads the end token alone, and writes something anyway.";
  const parts = [];
  if (cut) {
    parts.push(`Too long: the model reads ${[...text].length} characters at most. ` +
      `${cut.toLocaleString("en")} at the end are left out.`);
  }
  if (unknown.length) {
    const listed = unknown.slice(0, 8).map((each) => `\u2068${each}\u2069`).join(" ");
    const more = unknown.length > 8 ? ` and ${unknown.length - 8} more` : "";
    parts.push(`Unknown to the model: ${listed}${more}. A mask hides ` +
      `${unknown.length === 1 ? "it" : "them"} from every head.`);
  }
  if (!parts.length && unlike) parts.push(unlike);
  return parts.join(" ");
}
