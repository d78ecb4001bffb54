// The fields of an exercise, its button, and what is said of an answer.

import { h, uniqueId } from "../ui/dom.js";
import { loadStyle } from "../ui/piece.js";
import { keep, progress } from "../ui/progress.js";
import { grid } from "./grid.js";
import { parse, wrongWith } from "./judge.js";

/** @typedef {import("./judge.js").Exercise} Exercise */
/** @typedef {import("./judge.js").Field} Field */
/** @typedef {{right: boolean | null, unknown?: boolean, lines: string[]}} Said */

const EMPTY = "Write a number first, such as 12,345, 0.375, 37.5 % or 3/8.";
const NONE = "Choose one first.";

/**
 * Make an exercise one that can be answered.
 * @param {HTMLElement} place
 */
export async function answerable(place) {
  await loadStyle(new URL("exercises.css", import.meta.url));
  const name = place.dataset.exercise ?? "";
  /** @type {Exercise} */
  const exercise = JSON.parse(place.querySelector("script")?.textContent ?? "");
  const asked = exercise.options.length
    ? [choice(exercise)] : exercise.fields.map((x) => field(x, exercise));
  const said = h("div", { class: "answer-said", role: "status" });
  const form = h("form", { class: "answer", novalidate: true },
    ...asked.map((each) => each.element),
    h("p", {}, h("button", { class: "md-button", text: "Check" })),
    said);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const found = asked.map((each) => each.look());
    const right = found.every((each) => each.right);
    const told = exercise.options.length ? found : [{ right, lines: [] }];
    show(said, right ? told : found, exercise.texts);
    if (found.some((each) => each.right === false && each.unknown)) {
      said.append(h("p", { text: exercise.hint })); // once, however many are wrong
    }
    if (right) keep(name, "right");
  });
  form.addEventListener("input", () => said.replaceChildren());
  place.append(form);
  if (progress()[name] === "right") {
    said.append(h("p", { class: "answer-had", text: "✓ You had this right." }));
  }
}

/**
 * @param {HTMLElement} place
 * @param {Said[]} found
 * @param {Record<string, string>} texts
 */
function show(place, found, texts) {
  place.replaceChildren(...found.map(({ right, lines }) => {
    const mark = right === null ? "" : right ? `✓ ${texts.right}` : `✗ ${texts.wrong}`;
    const verdict = right === null ? "open" : right ? "right" : "wrong";
    return h("p", { "data-verdict": verdict }, h("b", { text: mark }),
      ` ${lines.filter(Boolean).join(" ")}`);
  }));
}

/**
 * Radio buttons, one for each option.
 * @param {Exercise} exercise
 * @returns {{element: HTMLElement, look: () => Said}}
 */
function choice({ asks, options }) {
  const name = uniqueId("choice");
  const inputs = options.map((_, i) => h("input", { type: "radio", name, value: i }));
  const element = h("fieldset", {}, h("legend", { text: asks }),
    ...options.map(({ says }, i) => h("label", { class: "answer-option" },
      inputs[i], h("span", { text: says }))));
  return {
    element,
    look() {
      const taken = options[inputs.findIndex((input) => input.checked)];
      return taken ? { right: taken.right, lines: [taken.told] }
        : { right: null, lines: [NONE] };
    },
  };
}

/**
 * Numbers to write, or a mask to click.
 * @param {Field} asked
 * @param {Exercise} exercise
 * @returns {{element: HTMLElement, look: () => Said}}
 */
function field(asked, { fields, hint }) {
  const about = fields.length > 1 ? `${asked.asks}: ` : "";
  const made = asked.mask ? grid(asked) : numbers(asked);
  return {
    element: made.element,
    look() {
      const given = made.read();
      if (given.some(Number.isNaN)) return { right: null, lines: [`${about}${EMPTY}`] };
      const told = wrongWith(asked, given);
      if (told) return { right: false, lines: [about, told] };
      if (told === "" && !about) return { right: false, lines: [hint] };
      const lines = about ? [`${asked.asks}.`] : [];
      return { right: told === null, unknown: told === "", lines };
    },
  };
}

/**
 * @param {Field} asked
 * @returns {{element: HTMLElement, read: () => number[]}}
 */
function numbers({ asks, shape, right }) {
  const [columns] = shape.slice(-1);
  const inputs = right.map((_, i) => h("input", {
    type: "text",
    inputmode: "text",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": shape.length ? `${asks}: ${placed(i, shape)}` : null,
  }));
  const read = () => inputs.map((input) => parse(input.value));
  if (!shape.length) {
    const id = uniqueId("answer");
    inputs[0].id = id;
    return {
      element: h("p", { class: "answer-number" },
        h("label", { for: id, text: asks }), inputs[0]),
      read,
    };
  }
  const table = h("div", { class: "answer-numbers" }, ...inputs);
  table.style.setProperty("--columns", String(columns));
  return { element: h("fieldset", {}, h("legend", { text: asks }), table), read };
}

/**
 * Say in words which number of an array it is.
 * @param {number} index
 * @param {number[]} shape
 */
function placed(index, shape) {
  const [columns] = shape.slice(-1);
  const column = `number ${index % columns}`;
  return shape.length > 1 ? `row ${Math.floor(index / columns)}, ${column}` : column;
}
