/**
 * A vocabulary of characters: from text to ids, and from ids to text.
 *
 * Twin of tformer/data/vocabulary.py. One thing differs: where the package raises an
 * error, a reader's text may have characters that the model never saw. They become
 * padding, which the mask hides from every query.
 */

/** Give each character an id; 0, 1 and 2 are padding, start and end. */
export class CharacterVocabulary {
  padId = 0;
  bosId = 1;
  eosId = 2;

  /** @param {string} characters each once; the first gets id 3 */
  constructor(characters) {
    this.characters = [...characters]; // by code points, as Python counts
    this.idOf = new Map(this.characters.map((character, i) => [character, i + 3]));
  }

  /** The number of tokens V. */
  get size() {
    return 3 + this.characters.length;
  }

  /**
   * Turn text into ids, one for each code point of `[...text]`.
   * @param {string} text
   * @param {{bos?: boolean, eos?: boolean}} [options] with the start and the end token
   * @returns {number[]} characters that the model never saw have `padId`
   */
  encode(text, { bos = false, eos = false } = {}) {
    const ids = [...text].map((character) => this.idOf.get(character) ?? this.padId);
    return [...(bos ? [this.bosId] : []), ...ids, ...(eos ? [this.eosId] : [])];
  }

  /**
   * List the characters that the model never saw, each once.
   * @param {string} text
   * @returns {string[]}
   */
  unknown(text) {
    return [...new Set(text)].filter((character) => !this.idOf.has(character));
  }

  /**
   * Turn ids into text, up to the first end token, without padding and start.
   * @param {readonly number[]} ids
   * @returns {string}
   */
  decode(ids) {
    const end = ids.indexOf(this.eosId);
    const kept = end < 0 ? ids : ids.slice(0, end);
    return kept.filter((id) => id > this.eosId).map((id) => this.symbol(id)).join("");
  }

  /**
   * Say how a token is shown: its character, or a name in brackets.
   * @param {number} id
   * @returns {string} "a", "⟨bos⟩", "⟨eos⟩"; "⟨unknown⟩" for padding
   * @throws {RangeError} the id is outside the vocabulary
   */
  symbol(id) {
    const symbol = ["⟨unknown⟩", "⟨bos⟩", "⟨eos⟩"][id] ?? this.characters[id - 3];
    if (symbol === undefined) throw new RangeError(`id (${id}) must be in [0, ${this.size})`);
    return symbol;
  }
}
