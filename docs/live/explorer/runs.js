// Running the model: once as it was trained, and once as the reader has changed it.

import { plain } from "../engine/dates.js";
import { write } from "../engine/generate.js";
import { Transformer } from "../engine/transformer.js";
import { loadForms, remarkOn, strange } from "./forms.js";
import { TRAINED, isUnbroken } from "./state.js";
import { sourceTokens, token } from "./tokens.js";

/** @typedef {import("../engine/generate.js").Step} Step */
/** @typedef {import("../engine/recording.js").Recording} Recording */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./tokens.js").Token} Token */

/**
 * One text that a model wrote, with every number on the way.
 * @typedef {Object} Writing
 * @property {Step[]} steps one a token
 * @property {Token[]} tokens what was written
 * @property {number[]} chosen the probability of each when it was chosen, by the logits
 * @property {string} text without the end token
 */

/**
 * @typedef {Object} Reading
 * @property {string} text what the model reads
 * @property {number} cut characters that were left out at its end
 * @property {string[]} unknown characters that the model never saw
 * @property {string} unlike what of the text the training had not, in a sentence
 */

/** Where the models lie. */
const MODELS = new URL("../models/", import.meta.url);

/** @type {Map<string, Promise<Transformer>>} */
const loaded = new Map();

/**
 * Fetch a model once; one that failed is fetched anew.
 * @param {string} name
 * @returns {Promise<Transformer>}
 */
export function loadModel(name) {
  const known = loaded.get(name);
  if (known) return known;
  const model = Transformer.load(new URL(name, MODELS));
  loaded.set(name, model);
  model.catch(() => loaded.delete(name));
  return model;
}

/**
 * Make of what was typed what the model can read.
 * @param {Transformer} model
 * @param {string} typed
 * @param {import("./forms.js").Forms | null} forms of the training
 * @returns {Reading}
 */
export function readable(model, typed, forms) {
  const characters = [...plain(typed.slice(0, 20_000).replace(/\s/g, " "))];
  const most = model.config.maxLen - 1; // the end token is one
  const text = characters.slice(0, most).join("");
  return {
    text,
    cut: Math.max(0, [...typed].length - most),
    unknown: model.vocabulary.unknown(text),
    unlike: forms ? remarkOn(strange(text, forms), forms) : "",
  };
}

/**
 * Let a model write, with what the reader has changed in it.
 * @param {Transformer} model
 * @param {string} text
 * @param {State} state
 * @returns {Writing}
 */
export function writing(model, text, state) {
  const source = model.vocabulary.encode(text, { eos: true });
  const steps = [...write(model, source, {
    changes: changesOf(model, state),
    temperature: state.temperature,
    topK: state.topK || null,
    seed: state.seed,
  })];
  const tokens = steps.map((step) => token(model, step.id));
  const chosen = steps.map((step) => step.probabilities[step.id]);
  const ids = steps.at(-1)?.ids ?? [];
  return { steps, tokens, chosen, text: model.vocabulary.decode(ids) };
}

/**
 * @param {Transformer} model
 * @param {State} state
 * @returns {import("../engine/recording.js").Changes}
 */
export function changesOf(model, { off, scale, positions, causal }) {
  const hidden = causal && model.trained.causal;
  return { off: new Set(off), scale, positions, causal: hidden };
}

/**
 * Ask a model for every character at once, with the answer before its eyes, as training
 * does: teacher forcing.
 * @param {Transformer} model
 * @param {string} text
 * @param {string} answer
 * @param {State} state
 * @returns {Token[]} the likeliest token at each place
 */
export function forced(model, text, answer, state) {
  const { vocabulary } = model;
  const changes = changesOf(model, state);
  const { memory } = model.encode(vocabulary.encode(text, { eos: true }), changes);
  const { logits } = model.decode(vocabulary.encode(answer, { bos: true }), memory, changes);
  return Array.from({ length: logits.rows }, (_, t) => {
    const row = logits.row(t);
    return token(model, row.indexOf(Math.max(...row)));
  });
}

/**
 * All that is shown, of one state.
 * @typedef {Object} View
 * @property {State} state
 * @property {Transformer} model that is shown
 * @property {Reading} reading
 * @property {Token[]} source
 * @property {Writing} shown of the model as it is set now
 * @property {Writing} whole of the model as it was trained, likeliest token
 * @property {Token[] | null} forced what it answers with the answer before its eyes
 * @property {boolean} broken whether the two may differ
 * @property {number} count tokens that are written so far
 * @property {number} row the written token that is looked at
 * @property {number} sourceRow the token of the source that is looked at
 * @property {Recording | null} record of the pass that wrote the newest token
 */

/**
 * Keeps the two runs, and computes anew only what a change of the state asks for.
 */
export class Runs {
  /** @type {Map<string, Writing>} */
  #kept = new Map();

  /**
   * @param {State} state
   * @returns {Promise<View>}
   */
  async view(state) {
    const [whole, model, forms] = await Promise.all(
      [loadModel(TRAINED), loadModel(state.model), loadForms()]);
    const reading = readable(whole, state.text, forms);
    const broken = !isUnbroken(state);
    const unbroken = { ...state, off: [], scale: 1, positions: 1, causal: true, temperature: 0 };
    const first = this.#run(whole, reading.text, { ...unbroken, model: TRAINED });
    const shown = broken ? this.#run(model, reading.text, state) : first;
    const source = sourceTokens(model, reading.text);
    const count = Math.min(state.step ?? Infinity, shown.steps.length);
    const record = shown.steps[count - 1]?.record ?? null;
    const [side, at] = state.token.split(":");
    const row = Math.min(side === "target" ? Number(at) : count - 1, count - 1);
    return {
      state, model, reading, source, shown, whole: first, broken, count, row, record,
      forced: model.trained.causal ? null : forced(model, reading.text, first.text, state),
      sourceRow: side === "source"
        ? Math.min(Number(at), source.length - 1)
        : lookedAt(record, state.head, row),
    };
  }

  /**
   * @param {Transformer} model
   * @param {string} text
   * @param {State} state
   */
  #run(model, text, state) {
    const { off, scale, positions, causal, temperature, topK, seed } = state;
    const key = JSON.stringify(
      [state.model, text, off, scale, positions, causal, temperature, topK, seed]);
    const known = this.#kept.get(key);
    if (known) return known;
    if (this.#kept.size > 5) this.#kept.delete(this.#kept.keys().next().value ?? "");
    const made = writing(model, text, state);
    this.#kept.set(key, made);
    return made;
  }
}

/**
 * The place of the source at which a cross-attention looks most; that of layer 2, head 3
 * if the head is another kind.
 * @param {Recording | null} record
 * @param {string} head
 * @param {number} row
 */
function lookedAt(record, head, row) {
  if (!record || row < 0) return 0;
  const [name, at] = crossHead(head);
  const weights = record.attention(name).weights[at].row(row);
  return weights.indexOf(Math.max(...weights));
}

/**
 * The cross-attention whose lines are drawn: the picked one, if it is one.
 * @param {string} head
 * @returns {[string, number]}
 */
export function crossHead(head) {
  const name = head.includes("cross_attention") ? head : "decoder.blocks.1.cross_attention:2";
  const [attention, at] = name.split(":");
  return [attention, Number(at)];
}
