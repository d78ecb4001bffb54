// Run by node: reads {known, texts, lengths} and writes what the page's reader
// says of each config: its counts, or why it refuses.
import { readFileSync } from "node:fs";

const FORMULAS = new URL("../../docs/live/formulas/", import.meta.url);
const { cacheBytes, parse, read, Refused } = await import(new URL("config.js", FORMULAS));

const { known, texts, lengths } = JSON.parse(readFileSync(0, "utf-8"));

/** @param {string} text */
function answer(text) {
  try {
    const reading = read(parse(text), known);
    const { rows, layers, parameters, active, unknown, notes, maxLen } = reading;
    const kinds = layers.map(({ attends, network }) => [attends, network.kind]);
    const all = [...lengths, maxLen];
    const cache = all.map((length) => cacheBytes(reading, length, 2));
    const wideCache = cacheBytes(reading, maxLen, 4);
    return { rows, kinds, parameters, active, unknown, notes, maxLen, cache, wideCache };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.message };
    throw error;
  }
}

process.stdout.write(JSON.stringify(texts.map(answer)));
