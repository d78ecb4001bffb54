/**
 * The words of a config.json: read from a text, completed by the family's defaults.
 *
 * What the families know stands in families.json, made from `tformer.models.families`.
 */

/** @typedef {Record<string, any>} Config */
/**
 * @typedef {object} Known
 * @property {string[]} notes words that change no number
 * @property {string[]} may_be_null words that may be null though the default is a number
 * @property {Record<string, {defaults: Config, presets: Record<string, Config>,
 *   section: string | null}>} families by `model_type`
 */

const LONGEST = 200_000; // characters of a config.json: the longest known have a tenth
/** Words of files that say how weights are stored or loaded, not how many they are. */
const OF_FILES = [
  "quantization_config", "compression_config", "_attn_implementation", "attn_implementation",
  "_attn_implementation_autoset", "torchscript", "use_bfloat16", "tokenizer_class",
  "transformers.js_config", "unsloth_version", "unsloth_fixed", "name_or_path",
  "eos_token", "bos_token", "use_mrope", "initial_context_length",
];
/** Words that some files write beside another, with its value. */
const TWICE = { experts_per_token: "num_experts_per_tok" };
/** Words that a file of images and text says of the whole, for its part that writes. */
const OF_WHOLE = ["tie_word_embeddings"];

/** Why a config cannot be counted: one sentence for the reader. */
export class Refused extends Error {}

/**
 * Read a text as JSON.
 * @param {string} text
 * @returns {Config}
 */
export function parse(text) {
  if (!text.trim()) throw new Refused("There is nothing yet: paste a config.json.");
  if (text.length > LONGEST) {
    throw new Refused(`This text has ${text.length} characters, more than any config.json.`);
  }
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/\s+/g, " ") : "";
    throw new Refused(`This is no JSON: ${why.slice(0, 160)}.`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new Refused("A config.json is an object, { … }, of words and values.");
  }
  return found;
}

/**
 * Complete a config by the defaults of its family.
 * @param {Config} given
 * @param {Known} known
 * @returns {{c: Config, kind: string, unknown: string[], notes: string[]}} the complete
 *   config, the words that the family does not know, and what is to be said
 */
export function complete(given, known) {
  const notes = [];
  let own = given;
  const text = given.text_config;
  if (!has(known.families, given.model_type) && isObject(text)) {
    own = { ...text };
    for (const word of OF_WHOLE) {
      if (Object.hasOwn(given, word) && !Object.hasOwn(own, word)) own[word] = given[word];
    }
    notes.push("Only text_config is counted: what sees or hears stands beside it.");
  }
  const kind = own.model_type;
  if (!has(known.families, kind)) {
    const said = kind === undefined ? "The config has no model_type."
      : `model_type (${shown(kind)}) is not known here.`;
    throw new Refused(`${said} Known are ${Object.keys(known.families).join(", ")}. If the ` +
      "model is built as one of these, write its name there, and this is what is counted.");
  }
  const { defaults } = known.families[kind];
  const c = { ...defaults };
  const unknown = [];
  for (const [word, value] of Object.entries(own)) {
    if (Object.hasOwn(defaults, word)) {
      checkKind(word, value, defaults[word], known.may_be_null);
      c[word] = value;
    } else if (!known.notes.includes(word) && !OF_FILES.includes(word) &&
        !word.endsWith("_token_id")) {
      unknown.push(word.slice(0, 60));
    }
  }
  for (const [word, other] of Object.entries(TWICE)) {
    if (own[word] === c[other] && unknown.includes(word)) unknown.splice(unknown.indexOf(word), 1);
  }
  const further = c.num_nextn_predict_layers ?? 0;
  if (further > 0) {
    notes.push(`Left out, as Hugging Face’s class does: layers that guess further tokens ` +
      `(num_nextn_predict_layers ${shown(further)}).`);
  }
  return { c, kind, unknown, notes };
}

/**
 * @param {object} table
 * @param {unknown} name
 * @returns {name is string}
 */
function has(table, name) {
  return typeof name === "string" && Object.hasOwn(table, name);
}

/** @param {unknown} value */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A value as JSON, cut where it is long.
 * @param {unknown} value
 */
export function shown(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/**
 * Refuse a value of another kind than the default.
 * @param {string} word
 * @param {unknown} value
 * @param {unknown} usual
 * @param {string[]} mayBeNull
 */
function checkKind(word, value, usual, mayBeNull) {
  const kind = typeof usual;
  if (kind !== "number" && kind !== "boolean") return;
  if (value === null && mayBeNull.includes(word)) return;
  if (typeof value === kind) return;
  const said = kind === "number" ? "a number" : "true or false";
  throw new Refused(`${word} (${shown(value)}) must be ${said}.`);
}

/**
 * A size of a config: a whole number, at least 1.
 * @param {Config} c
 * @param {string} word
 * @param {{least?: number, most?: number}} [range]
 * @returns {number}
 */
export function size(c, word, { least = 1, most = 1e8 } = {}) {
  const value = c[word];
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  const rule = `a whole number from ${least} to ${most.toLocaleString("en")}`;
  throw new Refused(`${word} (${shown(value)}) must be ${rule}.`);
}

/**
 * A size that may be missing.
 * @param {Config} c
 * @param {string} word
 * @param {number} otherwise
 */
export function sizeOr(c, word, otherwise) {
  return c[word] === null || c[word] === undefined ? otherwise : size(c, word);
}

/**
 * Refuse a value that a family does not have.
 * @param {Config} c
 * @param {string} word
 * @param {...unknown} values
 */
export function only(c, word, ...values) {
  if (values.includes(c[word])) return;
  const said = values.map(shown).join(" or ");
  throw new Refused(`${word} (${shown(c[word])}) must be ${said} in ${c.model_type}.`);
}

/**
 * Refuse where one size does not divide another.
 * @param {[string, number]} whole name and size
 * @param {[string, number]} part
 */
export function divides([whole, n], [part, m]) {
  if (n % m) throw new Refused(`${whole} (${n}) must be divisible by ${part} (${m}).`);
}
