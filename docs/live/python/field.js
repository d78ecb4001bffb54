// A text field for Python: the browser's own, which keyboards, phones and screen readers
// know, with the indentation that Python needs. What is typed can be undone.

import { h } from "../ui/dom.js";

const STEP = "    ";

/**
 * @param {{label: string, value: string, on: () => void, submit: () => void}} given
 *   `on` is called when the text changes, `submit` by Ctrl + Enter.
 * @returns {HTMLTextAreaElement}
 */
export function codeField({ label, value, on, submit }) {
  const area = h("textarea", {
    class: "python-field", "aria-label": label, spellcheck: "false", wrap: "soft",
    autocomplete: "off", autocapitalize: "off", autocorrect: "off",
  });
  let leaves = false; // Escape was the last key: Tab goes on in the page
  const fit = () => (area.rows = Math.max(6, area.value.split("\n").length + 1));
  area.value = value;
  fit();
  area.addEventListener("input", () => {
    fit();
    on();
  });
  area.addEventListener("beforeinput", (event) => {
    const text = typed(area, event.inputType);
    if (text === null) return;
    event.preventDefault();
    insert(area, text);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Tab" && !leaves && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      indent(area, event.shiftKey);
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
    if (event.key !== "Shift") leaves = event.key === "Escape";
  });
  area.addEventListener("blur", () => (leaves = false));
  return area;
}

/**
 * Return what an edit writes instead of what the browser would; null leaves it alone.
 * @param {HTMLTextAreaElement} area
 * @param {string} kind
 */
function typed(area, kind) {
  const { value, selectionStart: start, selectionEnd: end } = area;
  const before = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
  const margin = before.match(/^ */)?.[0] ?? "";
  if (kind === "insertLineBreak") {
    return `\n${margin}${/:\s*(#.*)?$/.test(before) ? STEP : ""}`;
  }
  const whole = margin.length > 0 && margin.length === before.length;
  if (kind === "deleteContentBackward" && start === end && whole) {
    area.setSelectionRange(start - ((margin.length - 1) % STEP.length + 1), end);
    return "";
  }
  return null;
}

/**
 * Indent the lines of the selection by one step, or take one step away.
 * @param {HTMLTextAreaElement} area
 * @param {boolean} back
 */
export function indent(area, back) {
  const { value, selectionStart: start, selectionEnd: end } = area;
  if (!back && start === end) return insert(area, STEP);
  const from = value.lastIndexOf("\n", start - 1) + 1;
  const lines = value.slice(from, end).split("\n");
  const moved = lines.map((line) => {
    if (!back) return line ? STEP + line : line;
    return line.replace(/^ {1,4}/, "");
  });
  area.setSelectionRange(from, end);
  insert(area, moved.join("\n"));
  const [first] = moved;
  const shift = first.length - lines[0].length;
  const left = Math.max(from, start + shift);
  const right = from + moved.join("\n").length;
  area.setSelectionRange(left, start === end ? left : right);
}

/**
 * Select a line, and show it: the field has no numbers beside its lines.
 * @param {HTMLTextAreaElement} area
 * @param {number} number
 */
export function goToLine(area, number) {
  const lines = area.value.split("\n");
  const from = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(from, from + (lines[number - 1] ?? "").length);
}

/**
 * Replace the selection, so that it can be undone.
 * @param {HTMLTextAreaElement} area
 * @param {string} text
 */
function insert(area, text) {
  const command = text ? "insertText" : "delete";
  // The one way that keeps the history of the field.
  if (document.execCommand(command, false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}
