// What a reader has done, kept in this browser alone: {"rotary": "right", …} under one
// key. Where nothing can be kept, in a private window, say, it lasts as long as the page.

const KEY = "tformer progress";

/** @type {Record<string, string>} */
let known = {};

/** Return what is known of all exercises. @returns {Record<string, string>} */
export function progress() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (kept && typeof kept === "object") known = { ...known, ...kept };
  } catch {
    // no room, not allowed, or not ours
  }
  return known;
}

/**
 * Keep what became of an exercise; `null` forgets it.
 * @param {string} exercise a function such as "rotary", or "masks 5"
 * @param {string | null} state "right", or what else a caller wants to find again
 */
export function keep(exercise, state) {
  known = { ...progress() };
  if (state === null) delete known[exercise];
  else known[exercise] = state;
  try {
    localStorage.setItem(KEY, JSON.stringify(known));
  } catch {
    // it lasts as long as the page
  }
}
