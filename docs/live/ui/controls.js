// What a reader sets: a slider, a choice of few, a switch, a button. All are the
// browser's own controls, so that the keyboard and a screen reader know them.

import { h, set, uniqueId } from "./dom.js";

/**
 * @typedef {{element: HTMLElement, input: HTMLInputElement, value: number,
 *   limit: (min: number, max: number) => void}} Slider
 */

/**
 * Make a slider with its name and its value above it.
 * @param {{label: string, min: number, max: number, value: number, step?: number,
 *   format?: (value: number) => string, on: (value: number) => void}} given
 *   `on` is called when the reader moves it; setting `value` does not call it.
 * @returns {Slider}
 */
export function slider({ label, min, max, value, step = 1, format = String, on }) {
  const id = uniqueId("slider");
  const input = h("input", { type: "range", id, min, max, step });
  const output = h("output", { for: id, class: "live-value", "aria-live": "off" });
  const show = () => {
    output.textContent = format(Number(input.value));
    input.setAttribute("aria-valuetext", format(Number(input.value)));
    const part = (Number(input.value) - Number(input.min)) /
      (Number(input.max) - Number(input.min) || 1);
    input.style.setProperty("--filled", `${100 * part}%`);
  };
  input.value = String(value);
  input.addEventListener("input", () => {
    show();
    on(Number(input.value));
  });
  show();
  const head = h("span", { class: "live-slider-head" },
    h("label", { for: id, text: label }), output);
  return {
    element: h("div", { class: "live-slider" }, head, input),
    input,
    get value() {
      return Number(input.value);
    },
    set value(x) {
      input.value = String(x);
      show();
    },
    limit(low, high) {
      set(input, { min: low, max: high });
      show();
    },
  };
}

/**
 * @template {string} V
 * @typedef {{element: HTMLElement, value: V | ""}} Choice "" takes none
 */

/**
 * Make a row of options, of which one is taken: radio buttons that look like tabs.
 * @template {string} V
 * @param {{label: string, options: {value: V, label: string}[], value: V,
 *   on: (value: V) => void}} given
 * @returns {Choice<V>}
 */
export function choice({ label, options, value, on }) {
  const name = uniqueId("choice");
  const inputs = options.map((option) => {
    const input = h("input", { type: "radio", name, value: option.value });
    input.checked = option.value === value;
    input.addEventListener("change", () => on(option.value));
    return input;
  });
  const row = h("div", { class: "live-options" }, ...inputs.map((input, i) =>
    h("label", {}, input, h("span", { text: options[i].label }))));
  return {
    element: h("fieldset", { class: "live-choice" }, h("legend", { text: label }), row),
    get value() {
      return /** @type {V} */ (inputs.find((input) => input.checked)?.value ?? "");
    },
    set value(x) {
      for (const input of inputs) input.checked = input.value === x;
    },
  };
}

/**
 * Make a switch that is on or off.
 * @param {{label: string, value: boolean, on: (value: boolean) => void}} given
 */
export function toggle({ label, value, on }) {
  const input = h("input", { type: "checkbox", role: "switch" });
  input.checked = value;
  input.addEventListener("change", () => on(input.checked));
  return {
    element: h("label", { class: "live-toggle" }, input, h("span", { text: label })),
    input,
    get value() {
      return input.checked;
    },
    set value(x) {
      input.checked = x;
    },
  };
}

/**
 * Make a button.
 * @param {string} label
 * @param {() => void} on
 */
export function button(label, on) {
  return h("button", { type: "button", class: "live-button", onclick: on }, label);
}
