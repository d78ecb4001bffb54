/**
 * The task that the model has learned: a date as people write it, as ISO 8601.
 *
 * Twin of tformer/tasks/dates.py, of which only this is needed here.
 */

/**
 * Write a text as those of training are: plain spaces, and composed letters (NFC).
 * @param {string} text
 * @returns {string}
 */
export function plain(text) {
  return text.replace(/[\u202f\u00a0]/g, " ").normalize("NFC");
}
