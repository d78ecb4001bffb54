// How tokens are written in pictures and spoken: a space must be seen, the end heard.

/** @typedef {import("../engine/transformer.js").Transformer} Transformer */

/**
 * @typedef {Object} Token
 * @property {number} id
 * @property {string} mark   what stands in a picture: one character
 * @property {string} name   what a screen reader says, and a sentence
 * @property {boolean} unknown the model never saw it, and cannot see it now
 */

/** What the marks mean that no keyboard has: below a picture. */
export const LEGEND = "␣ space · ▷ start · ▮ end · ? unknown";

/**
 * Name a token that the model writes, or has written.
 * @param {Transformer} model
 * @param {number} id
 * @returns {Token}
 */
export function token(model, id) {
  const { bosId, eosId, padId } = model.vocabulary;
  if (id === bosId) return { id, mark: "▷", name: "start", unknown: false };
  if (id === eosId) return { id, mark: "▮", name: "end", unknown: false };
  if (id === padId) return { id, mark: "?", name: "unknown", unknown: true };
  return visible(id, model.vocabulary.symbol(id));
}

/**
 * Name the tokens that the model reads: a character that it does not know stays visible.
 * @param {Transformer} model
 * @param {string} text
 * @returns {Token[]} the last is the end token
 */
export function sourceTokens(model, text) {
  const ids = model.vocabulary.encode(text, { eos: true });
  const characters = [...text];
  return ids.map((id, s) => {
    if (s === characters.length || id !== model.vocabulary.padId) return token(model, id);
    const name = `${characters[s]}, unknown`;
    return { id, mark: characters[s], name, unknown: true };
  });
}

/**
 * @param {number} id
 * @param {string} character
 * @returns {Token}
 */
function visible(id, character) {
  if (character === " ") return { id, mark: "␣", name: "space", unknown: false };
  if (character === "-") return { id, mark: "-", name: "hyphen", unknown: false };
  // What combines with the letter before it would vanish: it stands on a circle.
  const mark = /\p{M}/u.test(character) ? `◌${character}` : character;
  return { id, mark, name: character, unknown: false };
}
