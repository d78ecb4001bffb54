/**
 * What the reader has set, and how it stands in the address: `#text=3+mai+1979&off=…`.
 *
 * The part of an address after # is never sent to a server. Whatever it holds is checked:
 * a value that is not possible is left out, and the rest counts.
 */

/**
 * @typedef {Object} State
 * @property {string} text        what the model reads
 * @property {number | null} step tokens written so far; null: all
 * @property {string} head        "decoder.blocks.1.cross_attention:2", counted from 0
 * @property {string} token       the token that is followed: "target:5", "source:3"
 * @property {string} stage       the open part of its path: "decoder.blocks.1.cross_attention"
 * @property {string[]} off       heads that are switched off, sorted
 * @property {number} scale       factor of the scores, beside 1/√d_k
 * @property {number} positions   factor of the positional encoding
 * @property {boolean} causal     the causal mask is on
 * @property {number} temperature 0: the likeliest token
 * @property {number} topK        only so many tokens are drawn from; 0: all
 * @property {number} seed        of the draw
 * @property {string} model       name of the weights
 * @property {number} tour        the step of the tour, from 1; 0: no tour
 * @property {string} see         one of PLACES, led to at first; "": the top
 */

/** @typedef {{encoderLayers: number, decoderLayers: number, heads: number}} Sizes */

export const TRAINED = "dates-as-typed";
export const WITHOUT_MASK = "dates-as-typed-without-mask";

/** @type {Readonly<State>} */
export const START = Object.freeze({
  text: "jeudi 3 mai 1979",
  step: null,
  head: "decoder.blocks.1.cross_attention:2",
  token: "target:6",
  stage: "decoder.blocks.1.cross_attention",
  off: [],
  scale: 1,
  positions: 1,
  causal: true,
  temperature: 0,
  topK: 0,
  seed: 0,
  model: TRAINED,
  tour: 0,
  see: "",
});

/** What an address may lead to: the classes of parts of the explorer. */
export const PLACES = ["stage-box", "maps-box", "head-view", "path-view", "breaks"];

/** The ranges of what is a number: [least, largest, step]. */
export const RANGES = /** @type {const} */ ({
  scale: [0, 4, 0.25],
  positions: [0, 2, 0.1],
  temperature: [0, 3, 0.1],
  topK: [0, 20, 1],
  seed: [0, 9999, 1],
  tour: [0, 8, 1],
  step: [0, 99, 1],
});

/** The longest text that is kept from an address. */
const LONGEST = 300;

/**
 * Name every head of a model, in the order in which they are drawn.
 * @param {Sizes} sizes
 * @returns {string[]}
 */
export function headNames(sizes) {
  const names = [];
  for (const attention of attentionNames(sizes))
    for (let head = 0; head < sizes.heads; head++) names.push(`${attention}:${head}`);
  return names;
}

/**
 * Name every attention of a model, as the package does.
 * @param {Sizes} sizes
 */
export function attentionNames({ encoderLayers, decoderLayers }) {
  const layers = (/** @type {number} */ n) => [...Array(n).keys()];
  return [
    ...layers(encoderLayers).map((n) => `encoder.blocks.${n}.attention`),
    ...layers(decoderLayers).map((n) => `decoder.blocks.${n}.attention`),
    ...layers(decoderLayers).map((n) => `decoder.blocks.${n}.cross_attention`),
  ];
}

/**
 * Read the state from the part of an address after #.
 * @param {string} hash with or without the #
 * @param {Sizes} sizes of the model
 * @param {(tour: number) => State} [usual] what counts where the address is silent, at a
 *   stop of the tour
 * @returns {State}
 */
export function read(hash, sizes, usual = () => START) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const usually = usual(number(given.get("tour"), RANGES.tour) ?? 0);
  /** @type {State} */
  const state = { ...usually, off: [...usually.off] };
  const text = given.get("text");
  if (text !== null) state.text = [...text].slice(0, LONGEST).join("");

  const heads = headNames(sizes);
  const head = today(given.get("head"));
  if (head !== null && heads.includes(head)) state.head = head;
  const off = today(given.get("off"));
  if (off !== null) state.off = heads.filter((name) => off.split(",").includes(name));

  const token = given.get("token");
  if (token !== null && /^(source|target):\d{1,3}$/.test(token)) state.token = token;
  const stage = today(given.get("stage"));
  if (stage !== null && /^[a-z_.0-9]{1,60}$/.test(stage)) state.stage = stage;
  const see = given.get("see");
  if (see !== null && PLACES.includes(see)) state.see = see;
  const causal = given.get("causal");
  if (causal === "0" || causal === "1") state.causal = causal === "1";
  // An older address has the names of the models before these.
  const model = given.get("model")?.replace(/^dates(?!-as-typed)/, TRAINED);
  if (model === TRAINED || model === WITHOUT_MASK) state.model = model;

  for (const name of /** @type {(keyof typeof RANGES)[]} */ (Object.keys(RANGES))) {
    const value = number(given.get(name), RANGES[name]);
    if (value !== null) state[name] = value;
  }
  return state;
}

/**
 * Say whether an address holds a state of the explorer: neither a heading alone, nor what
 * another piece of the page keeps there under its own name.
 * @param {string} hash with the #
 */
export function isState(hash) {
  return hash.includes("=") && !/^#[a-z]+-[a-z-]+=/.test(hash);
}

/**
 * Give the modules in an older address the names that they have today.
 * @param {string | null} names
 */
function today(names) {
  return names?.replaceAll(".layers.", ".blocks.").replace(/\b(self|cross)_attn\b/g, (_, of) =>
    of === "self" ? "attention" : "cross_attention") ?? null;
}

/**
 * Write the state as an address has it: only what differs from the usual.
 * @param {State} state
 * @param {(tour: number) => State} [usual] as for `read`
 * @returns {string} beginning with #, or empty
 */
export function write(state, usual = () => START) {
  const usually = usual(state.tour);
  const kept = new URLSearchParams();
  if (state.tour) kept.set("tour", `${state.tour}`);
  for (const [name, value] of Object.entries(state)) {
    if (name === "tour" || value === null) continue;
    if (String(value) === String(usually[/** @type {keyof State} */ (name)])) continue;
    const text = typeof value === "boolean" ? Number(value) : value;
    kept.set(name, [...`${text}`].slice(0, LONGEST * 4).join(""));
  }
  const text = kept.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text && `#${text}`;
}

/**
 * Say whether the model runs as it was trained, and takes the likeliest token.
 * @param {State} state
 */
export function isUnbroken(state) {
  const { off, scale, positions, causal, temperature, model } = state;
  const changed = off.length || scale !== 1 || positions !== 1 || !causal;
  return !changed && temperature === 0 && model === TRAINED;
}

/**
 * @param {string | null} text
 * @param {readonly [number, number, number]} range
 */
function number(text, [least, largest, step]) {
  if (text === null || !/^\d+(\.\d+)?$/.test(text)) return null;
  const value = Math.round(Number(text) / step) * step;
  return value >= least && value <= largest ? Number(value.toFixed(2)) : null;
}
