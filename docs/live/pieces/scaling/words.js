// Large and small numbers as people say them.

import { grouped } from "../../ui/format.js";

/** @param {number} seconds */
export function milliseconds(seconds) {
  const ms = 1000 * seconds;
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s`
    : `${ms >= 100 ? grouped(ms) : ms.toPrecision(2)} ms`;
}

/** @param {number} hours */
export function duration(hours) {
  if (hours < 48) return `${few(hours)} hours`;
  return hours < 24 * 730 ? `${few(hours / 24)} days` : `${few(hours / 24 / 365)} years`;
}

/**
 * Three digits that count, or the whole number.
 * @param {number} value
 */
export function few(value) {
  return value >= 100 ? grouped(value) : String(Number(value.toPrecision(3)));
}

/**
 * 124 million, 1.56 billion, 300 billion, 10 trillion.
 * @param {number} value
 */
export function large(value) {
  const names = ["", " thousand", " million", " billion", " trillion"];
  const power = Math.min(Math.floor(Math.log10(value) / 3 + 1e-9), names.length - 1);
  return Number((value / 1000 ** power).toPrecision(3)) + names[power];
}

/**
 * The same where there is little room: 124 M, 1.56 bn, 10 tn.
 * @param {number} value
 */
export function short(value) {
  return large(value).replace(" million", " M").replace("billion", "bn")
    .replace("trillion", "tn");
}
