// Whether a text is a date as the model's training wrote them: the twin of
// tformer/tasks/known_dates.py, with its expressions.

/**
 * @typedef {Object} Forms
 * @property {RegExp[]} forms
 * @property {[number, number]} years the first and the last
 * @property {number} firstOfTwoDigits the first of the hundred years that two digits mean
 * @property {{otherOrders: number, otherYears: number}} right shares, as measured
 */

/** What is unlike the training: its form, its year, a day that no calendar has.
 * @typedef {"" | "form" | "year" | "day"} Strange
 */

/** @type {Promise<Forms | null> | null} */
let loading = null;

/** Fetch the forms once. Without them nothing is said: null. @returns {Promise<Forms | null>} */
export function loadForms() {
  loading ??= fetch(new URL("../forms.json", import.meta.url))
    .then((found) => found.json())
    .then(({ forms, ...others }) => ({
      ...others, forms: forms.map((/** @type {string} */ form) => new RegExp(`^${form}$`, "u")),
    }))
    .catch(() => {
      loading = null;
      return null;
    });
  return loading;
}

/**
 * Say what of a text the training had not.
 * @param {string} text as the model reads it
 * @param {Forms} known
 * @returns {Strange}
 */
export function strange(text, { forms, years, firstOfTwoDigits }) {
  /** @type {Strange} */
  let told = "form";
  for (const form of forms) {
    const parts = form.exec(text)?.groups;
    if (!parts) continue;
    const month = Number(parts.m ?? Object.keys(parts).find((name) =>
      name.startsWith("m") && parts[name])?.slice(1));
    const ago = (Number(parts.yy) - firstOfTwoDigits % 100 + 100) % 100;
    const [year, day] = [parts.y ? Number(parts.y) : firstOfTwoDigits + ago, Number(parts.d)];
    const inMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > inMonth) told = "day";
    else if (year < years[0] || year > years[1]) told = "year";
    else return "";
  }
  return told;
}

/**
 * @param {Strange} what
 * @param {Forms} known
 */
export function remarkOn(what, { years, right }) {
  const percent = (/** @type {number} */ share) => `${Math.round(100 * share)} %`;
  if (what === "form") {
    return "The model was not trained on this form, and may be wrong. " +
      `Of dates in other orders it read ${percent(right.otherOrders)}.`;
  }
  if (what === "year") {
    return `The model was trained on the years ${years[0]} to ${years[1]}. ` +
      `Of dates of other years it read ${percent(right.otherYears)}.`;
  }
  return what ? "No calendar has this day: the model was trained on days that exist." : "";
}
