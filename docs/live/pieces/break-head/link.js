// A bet as the address has it: `#break-head=decoder.blocks.0.attention:3&text=…`. The part
// of an address after # is never sent to a server.

/**
 * @typedef {Object} Bet
 * @property {string} text what the model reads
 * @property {string} head "decoder.blocks.0.attention:3", counted from 0; "" for none yet
 * @property {boolean} off whether the head is switched off
 */

export const KEY = "break-head";
/** The longest text that is kept from an address. */
const LONGEST = 300;

/**
 * Read the bet of an address; null if it has none. Whether the model has such a head is
 * asked where the model is.
 * @param {string} hash with or without the #
 * @returns {Bet | null}
 */
export function readBet(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const head = given.get(KEY);
  const text = [...(given.get("text") ?? "")].slice(0, LONGEST).join("");
  if (!head || !text || !/^[a-z_.]+\d[a-z_.]+:\d+$/.test(head)) return null;
  return { text, head, off: true };
}

/**
 * Write a bet as an address has it.
 * @param {Bet} bet
 */
export function writeBet({ text, head }) {
  const kept = new URLSearchParams([[KEY, head], ["text", text]]);
  return `#${kept.toString().replaceAll("%3A", ":")}`;
}
