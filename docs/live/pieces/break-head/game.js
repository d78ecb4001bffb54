// The game, once the model is there: what it writes, all its heads, the switch, and what
// came of the bet.

import { compare } from "../../explorer/compare.js";
import { remark } from "../../explorer/entry.js";
import { spoken } from "../../explorer/maps.js";
import { Runs, loadModel, writing } from "../../explorer/runs.js";
import { copyLink } from "../../explorer/share.js";
import { START, TRAINED } from "../../explorer/state.js";
import { h, set } from "../../ui/dom.js";
import { card } from "./card.js";
import { heads } from "./heads.js";
import { writeBet } from "./link.js";
import { among, attends, breaks, explained, outcome } from "./words.js";

/** @typedef {import("./link.js").Bet} Bet */
/** @typedef {import("../../explorer/runs.js").View} View */

/**
 * @typedef {Object} Game
 * @property {Node[]} elements
 * @property {(bet: Bet) => Promise<void>} play
 */

const PACE = 60; // ms a token, where things may move

/**
 * Load the model, and make the game.
 * @param {{still: () => boolean, say: (text: string) => void,
 *   noting: (text: string) => void}} given `noting` tells what of a text is unlike the
 *   training
 * @returns {Promise<Game>}
 */
export async function openGame({ still, say, noting }) {
  const model = await loadModel(TRAINED);
  const { numEncoderLayers, numDecoderLayers, numHeads } = model.config;
  const sizes = { encoderLayers: numEncoderLayers, decoderLayers: numDecoderLayers, heads: numHeads };
  const runs = new Runs();
  /** @type {Bet} */
  let bet = { text: "", head: "", off: false };
  let turn = 0;

  const board = compare();
  const bets = heads({ sizes, on: (head) => void play({ ...bet, head, off: false }) });
  const power = h("button", {
    type: "button", class: "live-button bet-switch",
    onclick: () => void play({ ...bet, off: !bet.off }),
  });
  const told = h("p", { class: "bet-told" });
  const looks = h("p", { class: "bet-looks" });
  const links = h("p", { class: "bet-links" });
  const share = copyLink(() => {
    const { pathname, search } = location;
    history.replaceState(history.state, "", `${pathname}${search}${writeBet(bet)}`);
  }, say);
  const picture = card(say, () => new URL(writeBet(bet), location.href).href);
  const every = h("button", { type: "button", class: "live-button", onclick: () => void tryAll() });
  const found = h("p", { class: "bet-found" });
  const result = h("div", { class: "bet-result" }, told, looks, links,
    h("div", { class: "bet-moves" }, every, share, ...picture.buttons), found, picture.element);

  /** @param {Bet} next */
  async function play(next) {
    const mine = (turn += 1);
    const head = bets.names.includes(next.head) ? next.head : "";
    const fresh = next.text !== bet.text;
    bet = { ...next, head, off: next.off && head !== "" };
    const state = { ...START, off: [], text: bet.text };
    const whole = await runs.view(state);
    const shown = bet.off ? await runs.view({ ...state, off: [head] }) : whole;
    if (mine !== turn) return;
    noting(remark(whole.reading));
    if (fresh) {
      bets.mark(new Set());
      found.textContent = "";
    }
    bets.update(whole, head);
    set(power, {
      text: bet.off ? "Switch it on again" : head ? `3. Switch off: ${spoken(head)}` : "3. Switch it off",
      disabled: !head,
    });
    set(result, { hidden: !bet.off });
    element.classList.toggle("broken", bet.off);
    if (fresh && !bet.off && !still() && !(await written(whole, mine))) return;
    board.update(shown);
    if (bet.off) tell(whole, shown);
    else if (!head) say(`It writes ${whole.shown.text || "nothing"}. Now bet on one of the ${bets.names.length} heads.`);
    else say(`Your bet: ${spoken(head)}. Now switch it off.`);
  }

  /**
   * Show what is written token by token; false if something else was asked for meanwhile.
   * @param {View} view
   * @param {number} mine
   */
  async function written(view, mine) {
    const { whole } = view;
    for (let t = 0; t < whole.tokens.length; t++) {
      board.update({ ...view, whole: { ...whole, tokens: whole.tokens.slice(0, t) } });
      await pause(PACE);
      if (mine !== turn) return false;
    }
    return true;
  }

  /** @param {View} whole @param {View} shown */
  function tell(whole, shown) {
    const broken = breaks(shown.whole, shown.shown);
    told.textContent = outcome(shown);
    result.classList.toggle("right", broken);
    looks.textContent = attends(whole, bet.head);
    links.replaceChildren(...explained(bet.head, broken).flatMap((each) => [each, " · "]).slice(0, -1));
    set(every, { text: `Try all ${bets.names.length} heads` });
    picture.update({ whole, shown, head: bet.head, broken });
    say(`${told.textContent} ${looks.textContent}`);
    links.scrollIntoView({ block: "nearest", behavior: still() ? "auto" : "smooth" });
  }

  /** Switch off each head alone, and mark those that break the date. */
  async function tryAll() {
    const mine = turn;
    const { text } = bet;
    const view = await runs.view({ ...START, off: [], text });
    const breaking = [];
    set(every, { disabled: true });
    for (const [n, head] of bets.names.entries()) {
      found.textContent = `Trying head ${n + 1} of ${bets.names.length} …`;
      const without = writing(model, view.reading.text, { ...START, off: [head] });
      if (breaks(view.whole, without)) breaking.push(head);
      await pause(0); // the page stays alive
    }
    set(every, { disabled: false });
    if (mine !== turn && text !== bet.text) return;
    bets.mark(new Set(breaking));
    found.textContent = among(breaking, bets.names.length);
    say(found.textContent);
  }

  const element = h("div", { class: "bet-game" }, board.element, bets.element, power, result);
  return { elements: [element], play };
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
