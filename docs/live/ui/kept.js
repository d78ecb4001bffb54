// What the book keeps in this browser, and nowhere else. Where nothing can be kept, in a
// private window, say, it lasts as long as the page.

/** What every name begins with: what is read, cards, exercises, ticks on checklists. */
const OURS = ["tformer ", "ticked ", "boxes "];

/** @type {Map<string, unknown>} */
const here = new Map();
let blocked = false;

/**
 * Return what is kept under a name; null if there is nothing.
 * @param {string} name
 * @returns {unknown}
 */
export function kept(name) {
  if (blocked) return here.get(name) ?? null;
  try {
    return JSON.parse(localStorage.getItem(name) ?? "null");
  } catch {
    return here.get(name) ?? null; // not allowed, or not ours
  }
}

/**
 * Keep a value under a name.
 * @param {string} name
 * @param {unknown} value
 */
export function keep(name, value) {
  here.set(name, value);
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    blocked = true;
  }
}

/** Whether what is kept outlasts the page. */
export function lasts() {
  try {
    const name = "tformer try";
    localStorage.setItem(name, "0");
    localStorage.removeItem(name);
    return !blocked;
  } catch {
    return false;
  }
}

/** Return the names of all that the book keeps. @returns {string[]} */
export function names() {
  try {
    return Object.keys(localStorage).filter((name) => OURS.some((start) => name.startsWith(start)));
  } catch {
    return [...here.keys()];
  }
}

/** Forget all of it. */
export function forget() {
  const all = names();
  here.clear();
  for (const name of all) {
    try {
      localStorage.removeItem(name);
    } catch {
      // it is forgotten with the page
    }
  }
}
