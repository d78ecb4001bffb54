// How numbers read: a fixed count of digits, a true minus sign, no minus zero.

/**
 * @param {number} value
 * @param {number} [digits] after the point
 */
export function fixed(value, digits = 2) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/**
 * @param {number} value a part of 1
 * @param {number} [digits] after the point
 */
export function percent(value, digits = 0) {
  return `${fixed(100 * value, digits)} %`;
}

/**
 * A whole number with commas: 1,024.
 * @param {number} value
 */
export function grouped(value) {
  return String(Math.round(value))
    .replace(/\B(?=(\d{3})+$)/g, ",")
    .replace("-", "−");
}
