// When a card comes again: Leitner's boxes. What is known moves one box on and comes later
// each time; what is not goes back to the first.

/** Days until a card of each box comes again: twice as many for each. */
export const DAYS = [1, 2, 4, 8, 16];
/** Cards a day. */
export const A_DAY = 5;

/** @typedef {{box: number, due: string}} Place the box from 1, and the day it comes again */
/** @typedef {Record<string, Place>} Places of each card that was answered */
/** @typedef {{day: string, ids: string[], done: number}} Hand the cards of a day */

/**
 * A day as 2026-11-26, where the reader is.
 * @param {Date} [date]
 */
export function dayOf(date = new Date()) {
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * @param {string} day
 * @param {number} days
 */
export function later(day, days) {
  const [year, month, date] = day.split("-").map(Number);
  return dayOf(new Date(year, month - 1, date + days));
}

/**
 * Where a card goes once it is answered.
 * @param {Place | undefined} place where it was; nowhere, if it is new
 * @param {boolean} knew
 * @param {string} day
 * @returns {Place}
 */
export function answered(place, knew, day) {
  const box = knew ? Math.min((place?.box ?? 0) + 1, DAYS.length) : 1;
  return { box, due: later(day, DAYS[box - 1]) };
}

/**
 * The cards of a day: those that are due, the longest waiting first, then new ones.
 * @param {string[]} ids of all cards, in the order of the book
 * @param {Places} places
 * @param {string} day
 * @returns {string[]} at most A_DAY
 */
export function hand(ids, places, day) {
  const due = ids.filter((id) => places[id] && places[id].due <= day)
    .sort((a, b) => (places[a].due < places[b].due ? -1 : places[a].due > places[b].due ? 1 : 0));
  const fresh = ids.filter((id) => !places[id]);
  return [...due, ...fresh].slice(0, A_DAY);
}

/**
 * Read places as they were kept; what is not one is left out.
 * @param {unknown} given
 * @returns {Places}
 */
export function placesOf(given) {
  const found = Object.entries(given && typeof given === "object" ? given : {});
  return Object.fromEntries(found.filter(([, place]) =>
    Number.isInteger(place?.box) && place.box >= 1 && place.box <= DAYS.length &&
    isDay(place.due)));
}

/**
 * Read the hand of a day as it was kept; null if it is of another day, or none.
 * @param {any} given
 * @param {string} day
 * @param {string[]} ids of all cards
 * @returns {Hand | null}
 */
export function handOf(given, day, ids) {
  if (given?.day !== day || !Array.isArray(given.ids) || !Number.isInteger(given.done)) return null;
  const there = given.ids.filter((/** @type {string} */ id) => ids.includes(id)).slice(0, A_DAY);
  if (there.length !== given.ids.length || given.done < 0 || given.done > there.length) return null;
  return { day, ids: there, done: given.done };
}

/** @param {unknown} text */
function isDay(text) {
  return typeof text === "string" && /^\d{4}-\d\d-\d\d$/.test(text);
}
