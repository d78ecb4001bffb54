/**
 * Which keys a query sees through a sliding window, how far layers of it reach, and how
 * many keys a cache that rolls takes room for: the chapter on sliding windows.
 */

/**
 * Whether a query sees a key: the newest W so far, and the first tokens of the text if
 * they are kept.
 * @param {number} query
 * @param {number} key
 * @param {number | null} window W, or null for all keys so far
 * @param {number} [first] tokens that are kept
 */
export function sees(query, key, window, first = 0) {
  return key <= query && (window === null || key > query - window || key < first);
}

/**
 * The window of each layer, from the first to the last: every so many-th has none.
 * @param {number} layers N
 * @param {number} window W
 * @param {number} globalEvery 0 for no layer
 * @returns {(number | null)[]}
 */
export function windowsOf(layers, window, globalEvery) {
  return Array.from({ length: layers }, (_, i) =>
    (globalEvery && (i + 1) % globalEvery === 0 ? null : window));
}

/**
 * What a token depends on: before the last layer, before the one below it, … down to the
 * input.
 * @param {number} tokens T
 * @param {number} token
 * @param {(number | null)[]} windows of the layers, from the first to the last
 * @param {number} [first] tokens that are kept
 * @returns {boolean[][]} from the output to the input, each (T,)
 */
export function reached(tokens, token, windows, first = 0) {
  const places = Array.from({ length: tokens }, (_, place) => place);
  const stages = [places.map((place) => place === token)];
  for (const window of windows.toReversed()) {
    const after = stages[stages.length - 1];
    stages.push(places.map((key) =>
      places.some((query) => after[query] && sees(query, key, window, first))));
  }
  return stages;
}

/**
 * For how many keys a layer's cache takes room: as `KeyValueCache` does, for 2 W at most.
 * @param {number} tokens T
 * @param {number | null} window W
 */
export function roomFor(tokens, window) {
  return window === null ? tokens : Math.min(tokens, 2 * window);
}
