// The path of one token through the network: every step, with the numbers that the model
// computed there and the lines of the package that compute them.

import { attentionSteps } from "./path-attention.js";
import { likeliest } from "./probabilities.js";
import { spoken } from "./maps.js";
import { token } from "./tokens.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./tokens.js").Token} Token */
/** @typedef {ArrayLike<number>} Numbers */

/**
 * What a step shows: a vector; a number for each token; a vector for each token.
 * @typedef {{kind: "vector", name: string, values: Numbers, part?: [number, number]}
 *   | {kind: "row", name: string, tokens: Token[], values: Numbers, digits?: number, most?: number}
 *   | {kind: "vectors", name: string, tokens: Token[], rows: Numbers[]}} Part
 */

/**
 * @typedef {Object} PathStep
 * @property {string} title
 * @property {string} text what happens, in a sentence
 * @property {string[]} quotes names in source.json of the lines that do it
 * @property {Part[]} parts
 */

/**
 * @typedef {Object} Stage
 * @property {string} id
 * @property {string} title
 * @property {string} chapter where it is explained
 * @property {Numbers} after the token's vector after this stage
 * @property {() => PathStep[]} steps
 */

/**
 * List the stages of the token that is followed.
 * @param {View} view
 * @returns {Stage[]}
 */
export function stages(view) {
  const { state, record, count, model } = view;
  if (!record || !count) return [];
  const inSource = state.token.startsWith("source");
  const at = inSource ? view.sourceRow : view.row;
  const { numEncoderLayers, numDecoderLayers } = model.config;
  const [side, stack] = inSource ? ["src", "encoder"] : ["tgt", "decoder"];
  const layers = inSource ? numEncoderLayers : numDecoderLayers;
  const row = (/** @type {string} */ name) => record.matrix(name).row(at);

  /** @type {Stage[]} */
  const all = [{
    id: "embedding",
    title: "Embedding + position",
    chapter: "positions",
    after: row(`${side}_positions`),
    steps: () => embeddingSteps(view, side, at),
  }];
  let before = row(`${side}_positions`);
  for (let layer = 0; layer < layers; layer++) {
    const name = `${stack}.blocks.${layer}`;
    for (const part of inSource ? ["attention"] : ["attention", "cross_attention"]) {
      const [attention, x] = [`${name}.${part}`, before];
      const after = row(`${name}.after_${part}`);
      all.push({
        id: attention,
        title: spoken(attention),
        chapter: part === "attention" && !inSource ? "masks" : "attention",
        after,
        steps: () => attentionSteps(view, attention, at, x),
      });
      before = after;
    }
    const x = before;
    all.push({
      id: `${name}.feed_forward`,
      title: `Feed-forward, layer ${layer + 1}`,
      chapter: "feed-forward",
      after: row(`${name}.after_feed_forward`),
      steps: () => feedForwardSteps(view, `${name}.feed_forward`, at, x),
    });
    before = row(`${name}.after_feed_forward`);
  }
  all.push({
    id: "output",
    title: inSource ? "Last norm: the memory" : "Last norm, logits, softmax",
    chapter: inSource ? "encoder" : "decoding",
    after: row(`${stack}.norm`),
    steps: () => inSource ? [lastNorm(view, stack, at)] : outputSteps(view, at),
  });
  return all;
}

/**
 * @param {View} view
 * @param {string} side
 * @param {number} at
 * @returns {PathStep[]}
 */
function embeddingSteps({ record, state, model }, side, at) {
  if (!record) return [];
  const embedded = record.matrix(`${side}_embedding`).row(at);
  const sum = record.matrix(`${side}_positions`).row(at);
  const position = Float32Array.from(sum, (x, i) => x - embedded[i]);
  const { dModel } = model.config;
  return [{
    title: "Embedding",
    text: `The token's row of the matrix of embeddings, ${dModel} numbers, times √${dModel} = ${Math.sqrt(dModel)}.`,
    quotes: ["embed", "embed-scale"],
    parts: [{ kind: "vector", name: "embedding", values: embedded }],
  }, {
    title: "+ position",
    text: `Sines and cosines of position ${at}, counted from 0, are added${state.positions === 1 ? "" : `, × ${state.positions}`}.`,
    quotes: ["positions"],
    parts: [
      { kind: "vector", name: `position ${at}`, values: position },
      { kind: "vector", name: "embedding + position", values: sum },
    ],
  }];
}

/**
 * @param {View} view
 * @param {string} name
 * @param {number} at
 * @param {Numbers} x what came in
 * @returns {PathStep[]}
 */
function feedForwardSteps({ record, model }, name, at, x) {
  if (!record) return [];
  const hidden = record.matrix(`${name}.hidden`).row(at);
  const alive = hidden.filter((value) => value > 0).length;
  return [
    normStep(record.matrix(`${name}_norm`).row(at), x),
    {
      title: "Wider, and ReLU",
      text: `To ${model.config.dFf} numbers; the negative ones become 0. ${alive} are left.`,
      quotes: ["hidden"],
      parts: [{ kind: "vector", name: "hidden", values: hidden }],
    },
    {
      title: "Back to the width",
      text: `From ${model.config.dFf} numbers to ${model.config.dModel}.`,
      quotes: ["feed"],
      parts: [{ kind: "vector", name: "output of the network", values: record.matrix(name).row(at) }],
    },
    residualStep(record.matrix(sumAfter(name)).row(at)),
  ];
}

/**
 * Name the sum after a sub-layer: of "decoder.blocks.0.attention" it is
 * "decoder.blocks.0.after_attention".
 * @param {string} sublayer
 */
export function sumAfter(sublayer) {
  return sublayer.replace(/\.(\w+)$/, ".after_$1");
}

/**
 * @param {Numbers} values
 * @param {Numbers} x
 * @returns {PathStep}
 */
export function normStep(values, x) {
  return {
    title: "Norm",
    text: "The token's vector is brought to mean 0 and variance 1, then each number gets its gain and its bias.",
    quotes: ["norm", "norm-gain"],
    parts: [
      { kind: "vector", name: "what comes in, x", values: x },
      { kind: "vector", name: "normalised", values },
    ],
  };
}

/** @param {Numbers} values @returns {PathStep} */
export function residualStep(values) {
  return {
    title: "+ what came in",
    text: "The result is added to x: the sub-layer changes the vector, and does not replace it.",
    quotes: ["residual"],
    parts: [{ kind: "vector", name: "x + result", values }],
  };
}

/**
 * @param {View} view
 * @param {string} stack
 * @param {number} at
 * @returns {PathStep}
 */
function lastNorm({ record }, stack, at) {
  return {
    title: "Last norm",
    text: stack === "encoder"
      ? "This vector goes into the memory, which every cross-attention reads."
      : "Pre-norm leaves the sum of all sub-layers unnormalised, so the stack ends with a norm.",
    quotes: [`${stack}-norm`],
    parts: [{ kind: "vector", name: "normalised", values: record?.matrix(`${stack}.norm`).row(at) ?? [] }],
  };
}

/**
 * @param {View} view
 * @param {number} at
 * @returns {PathStep[]}
 */
function outputSteps(view, at) {
  const { record, model, shown, state } = view;
  if (!record) return [];
  const logits = record.matrix("logits").row(at);
  const step = shown.steps[at];
  const newest = at === view.count - 1;
  const chances = newest ? step.probabilities : record.matrix("probabilities").row(at);
  const order = likeliest(logits, 8);
  const tokens = order.map((id) => token(model, id));
  const drawn = state.temperature > 0;
  return [
    lastNorm(view, "decoder", at),
    {
      title: "Logits",
      text: `The dot product with the embedding of each of the ${model.vocabulary.size} tokens. The eight largest:`,
      quotes: ["logits"],
      parts: [{ kind: "row", name: "logits", tokens, values: order.map((id) => logits[id]) }],
    },
    {
      title: drawn && newest ? `Softmax, at temperature ${state.temperature}` : "Softmax",
      text: "Logits become probabilities, which sum to 1 over all tokens.",
      quotes: drawn && newest ? ["temperature", "chances"] : ["chances"],
      parts: [{ kind: "row", name: "probabilities", tokens, values: order.map((id) => chances[id]), digits: 4, most: 1 }],
    },
    {
      title: "Choose",
      text: drawn
        ? `Drawn at random: ${token(model, step.id).name}.`
        : `The likeliest is written: ${token(model, step.id).name}.`,
      quotes: drawn ? ["draw"] : ["choose"],
      parts: [],
    },
  ];
}
