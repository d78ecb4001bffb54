/**
 * The whole Transformer: embeddings, encoder, decoder, and logits from the same matrix.
 *
 * Twin of tformer/models/transformer.py. Beside PyTorch and NumPy this folder is the third
 * implementation, and the one that runs in the reader's browser. It is held to the first
 * by tests/live: same tokens, same logits, same numbers on the way.
 *
 *     const model = await Transformer.load(new URL("models/dates", base));
 *     const source = model.vocabulary.encode("May 3, 1979", { eos: true });
 *     const { ids } = greedy(model, source);          // generate.js
 *     model.vocabulary.decode(ids);                   // "1979-05-03"
 *
 * S length of the source · T length of the target · D d_model · V vocabulary
 */

import { softmax } from "./attention.js";
import { Decoder } from "./decoder.js";
import { TokenEmbedding } from "./embedding.js";
import { Encoder } from "./encoder.js";
import { Linear, Matrix } from "./linear.js";
import { keyMask } from "./masks.js";
import { SinusoidalPositionalEncoding } from "./positions.js";
import { Run } from "./recording.js";
import { LoadError, loadCheckpoint } from "./safetensors.js";
import { CharacterVocabulary } from "./vocabulary.js";

/** @typedef {import("./recording.js").Changes} Changes */
/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("./safetensors.js").Manifest} Manifest */
/** @typedef {import("./safetensors.js").Tensors} Tensors */

/**
 * Sizes and choices, as in tformer/models/config.py.
 * @typedef {object} Config
 * @property {string} modelType "transformer"
 * @property {number} maxLen the longest sequence that the model is for
 * @property {number} vocabSize tokens V of the source, and of the target if it has no own
 * @property {number | null} tgtVocabSize tokens of the target, where it has its own
 * @property {number} dModel width D
 * @property {number} numHeads heads H
 * @property {number | null} numKvHeads key/value heads G; H if null
 * @property {number} numEncoderLayers
 * @property {number} numDecoderLayers
 * @property {number} dFf inner width F of the feed-forward networks
 * @property {string} activation "relu"
 * @property {boolean} normFirst pre-norm instead of post-norm
 * @property {number} eps added to the variance in the norms
 * @property {boolean} bias give linear layers and norms a bias
 * @property {string} positions "sinusoidal"
 * @property {boolean} tieEmbeddings make logits with the target's embedding matrix
 * @property {number | null} padId the token that is hidden from every query
 */

/** The encoder's output (S, D), and which of its rows are real tokens. */
export class Memory extends Matrix {
  /**
   * @param {Matrix} output (S, D)
   * @param {boolean[]} real (S,), false for padding
   */
  constructor(output, real) {
    super(output.rows, output.cols, output.data);
    this.real = real;
  }
}

/**
 * Predict each next token of a target from the source and the target so far.
 *
 * Vaswani et al. 2017, figure 1.
 */
export class Transformer {
  /**
   * @param {Config} config
   * @param {Tensors} tensors the weights, by the package's own names
   * @param {CharacterVocabulary} vocabulary
   * @param {Manifest} manifest
   */
  constructor(config, tensors, vocabulary, manifest) {
    this.config = config;
    this.vocabulary = vocabulary;
    this.manifest = manifest;
    // Of a model that was trained without the mask, nothing is hidden here either.
    this.trained = { causal: !manifest.settings?.without?.includes("mask") };

    const { vocabSize, tgtVocabSize, dModel } = config;
    const shared = tensors.matrix("src_embedding.weight", vocabSize, dModel);
    const own = tgtVocabSize && tensors.matrix("tgt_embedding.weight", tgtVocabSize, dModel);
    this.srcEmbedding = new TokenEmbedding("src_embedding", shared);
    this.tgtEmbedding = new TokenEmbedding("tgt_embedding", own || shared);
    this.srcPositions = new SinusoidalPositionalEncoding("src_positions");
    this.tgtPositions = new SinusoidalPositionalEncoding("tgt_positions");
    this.encoder = new Encoder(tensors, "encoder", config);
    this.decoder = new Decoder(tensors, "decoder", config);
    this.output = config.tieEmbeddings
      ? null
      : new Linear(tensors, "output", tgtVocabSize ?? vocabSize, dModel, false);
  }

  /**
   * Fetch a model: a folder of config.json and model.safetensors.
   * @param {URL | string} folder such as new URL("models/dates", base)
   * @returns {Promise<Transformer>}
   * @throws {LoadError} whose message is a sentence for the reader
   */
  static async load(folder) {
    const { config: saved, manifest, tensors } = await loadCheckpoint(folder);
    const config = configOf(saved);
    const vocabulary = new CharacterVocabulary(manifest.vocabulary.characters);
    return new Transformer(config, tensors, vocabulary, manifest);
  }

  /**
   * Read the source once, before decoding.
   * @param {readonly number[]} source S ids; those of padding are hidden from all queries
   * @param {Changes} [changes] in the model, for this time
   * @returns {{memory: Memory, record: Recording}} memory (S, D)
   */
  encode(source, changes = {}) {
    const run = new Run(changes, this.trained);
    const real = source.map((id) => id !== this.config.padId); // (S,)
    let x = this.srcEmbedding.forward(source, run); // (S, D)
    x = this.srcPositions.forward(x, run); // (S, D)
    x = this.encoder.forward(x, keyMask(real, source.length), run); // (S, D)
    return { memory: new Memory(x, real), record: run.record };
  }

  /**
   * Score what follows each token of the target.
   * @param {readonly number[]} target T ids, beginning with the start token
   * @param {Memory} memory (S, D), of `encode`
   * @param {Changes} [changes] in the model, for this time
   * @returns {{logits: Matrix, record: Recording}} logits (T, V)
   */
  decode(target, memory, changes = {}) {
    const run = new Run(changes, this.trained);
    let x = this.tgtEmbedding.forward(target, run); // (T, D)
    x = this.tgtPositions.forward(x, run); // (T, D)
    x = this.decoder.forward(x, memory, keyMask(memory.real, target.length), run); // (T, D)
    const logits = this.output ? this.output.forward(x, run) : this.tgtEmbedding.logits(x);
    run.keep("logits", logits); // (T, V)
    run.keep("probabilities", softmax(logits)); // (T, V)
    return { logits, record: run.record };
  }
}

/**
 * Read a config, whose names have underscores.
 * @param {Record<string, unknown>} saved
 * @returns {Config}
 * @throws {LoadError} it is of a model that this engine does not run
 */
export function configOf(saved) {
  const camel = (/** @type {string} */ name) => name.replace(/_(\w)/g, (_, c) => c.toUpperCase());
  const entries = Object.entries(saved).map(([name, value]) => [camel(name), value]);
  const config = /** @type {Config} */ (Object.fromEntries(entries));
  /** @type {[string, unknown, unknown][]} */
  const rules = [
    ["model_type", config.modelType, "transformer"],
    ["activation", config.activation, "relu"],
    ["positions", config.positions, "sinusoidal"],
  ];
  for (const [name, found, known] of rules) {
    if (found !== known) {
      const only = `this page can only run “${known}”`;
      throw new LoadError(`The model has ${name} “${found}”; ${only}.`);
    }
  }
  return config;
}
