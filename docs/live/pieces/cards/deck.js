// The cards: the interview questions of chapters, as docs/engine/site/questions.py takes
// them from the built pages.

const QUESTIONS = new URL("../../questions/", import.meta.url);
const CHAPTERS = new URL("../../../chapters/", import.meta.url);

/**
 * @typedef {Object} Card
 * @property {string} id made of the chapter and the question's words
 * @property {string} question HTML
 * @property {string} answer HTML
 * @property {string} chapter its name in addresses
 * @property {string} title of the chapter
 */

/** @typedef {{name: string, title: string}} Chapter that has questions */

/** Fetch the chapters that have questions. @returns {Promise<Chapter[]>} */
export async function chapters() {
  return found(new URL("index.json", QUESTIONS));
}

/**
 * Fetch the cards of some chapters, in the order of the book.
 * @param {Chapter[]} wanted
 * @returns {Promise<Card[]>}
 */
export async function deck(wanted) {
  const all = await Promise.all(wanted.map(async ({ name, title }) => {
    /** @type {{id: string, question: string, answer: string}[]} */
    const cards = await found(new URL(`${name}.json`, QUESTIONS));
    return cards.map((card) => ({ ...card, chapter: name, title }));
  }));
  return all.flat();
}

/** @param {URL} address */
async function found(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address.pathname}: the server says ${response.status}.`);
  return response.json();
}

/**
 * Make nodes of a piece of a chapter; its links lead where they led there. It is the
 * site's own HTML, and the page's policy runs no script that stands in it.
 * @param {string} html
 * @param {string} chapter
 */
export function nodes(html, chapter) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  const base = new URL(`${chapter}/`, CHAPTERS);
  for (const [selector, name] of [["a[href]", "href"], ["img[src]", "src"]]) {
    for (const each of body.querySelectorAll(selector)) {
      each.setAttribute(name, new URL(each.getAttribute(name) ?? "", base).href);
    }
  }
  for (const each of body.querySelectorAll("[id]")) each.removeAttribute("id");
  return [...body.childNodes];
}

/** The section of a chapter that has these questions. @param {string} chapter */
export function sectionOf(chapter) {
  return new URL(`${chapter}/#interview-questions`, CHAPTERS).href;
}
