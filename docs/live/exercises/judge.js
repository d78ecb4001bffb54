// What is right, and which wrong answer is a known one: as tformer/check/asked.py says.

/**
 * Numbers or booleans that are asked for; `right` and wrong ones row by row.
 * @typedef {{asks: string, shape: number[], mask: boolean, exact: boolean,
 *   percent: boolean, within: number, bound: string, right: number[],
 *   wrong: [number[], string][], rows: string[], columns: string[]}} Field
 * @typedef {{says: string, told: string, right: boolean}} Option
 * @typedef {{kind: string, asks: string, hint: string, fields: Field[],
 *   options: Option[], texts: Record<string, string>}} Exercise
 */

/**
 * Read a number as people write it: 12,345 or 0.375, 37.5 %, 3/8, 6.9e-4, 8.4 MB.
 * @param {string} text
 * @returns {number} NaN if it is none
 */
export function parse(text) {
  const parts = text.replace(/[−–]/g, "-").replace(/[\s_\u2009\u202f]/g, "").split("/");
  const numbers = parts.map(single);
  if (numbers.length === 1) return numbers[0];
  return numbers.length === 2 ? numbers[0] / numbers[1] : NaN;
}

/** @param {string} text */
function single(text) {
  const found = /^([-+]?[\d.,]*\d\.?(?:e[-+]?\d+)?)(%?)[a-z]*$/i.exec(text);
  if (!found) return NaN;
  let digits = found[1];
  if (/^[-+]?[1-9]\d{0,2}(,\d{3})+(\.|$|e)/i.test(digits)) digits = digits.replace(/,/g, "");
  const number = Number(digits.replace(",", "."));
  return found[2] ? number / 100 : number;
}

/**
 * Say what is wrong with numbers: null if nothing, "" if it is not known.
 * @param {Field} field
 * @param {number[]} given
 * @returns {string | null}
 */
export function wrongWith(field, given) {
  if (same(field, given, field.right)) return null;
  return field.wrong.find(([numbers]) => same(field, given, numbers))?.[1] ?? "";
}

/**
 * Compare: counts and booleans exactly, other numbers within a share.
 * @param {Field} field
 * @param {number[]} given
 * @param {number[]} right
 */
function same(field, given, right) {
  if (field.bound) {
    const least = field.bound === "at least";
    return given.every((x, i) => (least ? x >= right[i] : x <= right[i]));
  }
  const largest = Math.max(0, ...right.map(Math.abs));
  const room = (field.exact ? 0 : field.within) * largest + 1e-6;
  const near = field.percent ? [1, 100] : [1];
  return near.some((by) =>
    given.every((x, i) => Math.abs(x / by - right[i]) <= room));
}
