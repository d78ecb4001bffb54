// Elements in one line each. What is set as text stays text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * What an element gets: `text`, `class`, `onclick` and the like, or an attribute.
 * `false`, `null` and `undefined` leave an attribute out, `true` sets it empty.
 * @typedef {Record<string, string | number | boolean | null | undefined |
 *   ((event: any) => void)>} Given
 */

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * Make an HTML element: `h("p", {class: "note"}, "Drag ", h("em", {}, "it"))`.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Given} [given]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/**
 * Make an SVG element: `svg("circle", {cx: 1, cy: 2, r: 3})`.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Given} [given]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, given = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  return /** @type {SVGElementTagNameMap[T]} */ (filled(element, given, children));
}

/**
 * Set attributes of an element that is there.
 * @template {Element} E
 * @param {E} element
 * @param {Given} given
 * @returns {E}
 */
export function set(element, given) {
  for (const [name, value] of Object.entries(given)) {
    if (name === "text") element.textContent = String(value);
    else if (typeof value === "function") {
      element.addEventListener(name.replace(/^on/, ""), value);
    } else if (value === false || value === null || value === undefined) {
      element.removeAttribute(name);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  return element;
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Given} given
 * @param {Child[]} children
 * @returns {E}
 */
function filled(element, given, children) {
  set(element, given);
  for (const child of children) if (child) element.append(child);
  return element;
}

let names = 0;

/**
 * Return an id that nothing else in the page has.
 * @param {string} stem
 */
export function uniqueId(stem) {
  names += 1;
  return `live-${stem}-${names}`;
}
