/**
 * The task that the model has learned: a date as people write it, as ISO 8601.
 *
 * Twin of tformer/tasks/dates.py, of which only this is needed here.
 */

/** The longest text of training has so many characters. */
export const MAX_SOURCE_LEN = "segunda-feira, 28 de fevereiro de 2005".length;

/** An ISO date has so many; with the end token the model writes one more. */
export const ISO_LEN = "1979-05-03".length;

/**
 * Write a text as those of training are: plain spaces, and composed letters (NFC).
 * @param {string} text
 * @returns {string}
 */
export function plain(text) {
  return text.replace(/[\u202f\u00a0]/g, " ").normalize("NFC");
}
