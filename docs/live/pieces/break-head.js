// <live-break-head>: three clicks to break a date. A reader takes a date, bets on one of
// the model's heads, and switches it off.
//
// The dates stand there at once; the model and all that runs it come with the first click.

import { h, set } from "../ui/dom.js";
import { LivePiece, hint } from "../ui/piece.js";
import { dates } from "./break-head/dates.js";
import { readBet } from "./break-head/link.js";

/** @typedef {import("./break-head/game.js").Game} Game */

const RESULT = 160; // px that the sentences about a bet take

class LiveBreakHead extends LivePiece {
  static style = new URL("break-head.css", import.meta.url);

  /** @type {Promise<Game> | null} */
  #game = null;
  /** What was asked for last: an older answer is not shown.
   * @type {import("./break-head/link.js").Bet | null} */
  #asked = null;
  dates = dates({ on: (text) => void this.play({ text, head: "", off: false }) });
  message = h("div", { class: "bet-message", role: "alert", hidden: true });
  desk = h("div", { class: "bet-desk" });

  build() {
    window.addEventListener("hashchange", () => this.#open());
    return [
      hint(h("b", { text: "Break it in three clicks: " }), "a date, a bet, a switch."),
      this.dates.element, this.message, this.desk,
    ];
  }

  update() {
    void this.ready.then(() => this.#open()); // what is not shown yet is not scrolled to
  }

  /** Show the bet of the address, if it has one. */
  async #open() {
    const bet = readBet(location.hash);
    if (bet) await this.play(bet);
  }

  /**
   * Let the model write a date, with or without a head.
   * @param {import("./break-head/link.js").Bet} bet
   */
  async play(bet) {
    this.#asked = bet;
    this.dates.show(bet.text);
    let scripts = false;
    try {
      const { openGame } = await import("./break-head/game.js");
      scripts = true;
      this.#game ??= openGame({
        still: () => this.still,
        say: (text) => this.say(text),
        noting: (text) => this.dates.note(text),
      });
      const game = await this.#game;
      if (this.#asked !== bet) return;
      if (!this.desk.childElementCount) this.desk.append(...game.elements);
      set(this.message, { hidden: true });
      await game.play(bet);
      this.#bringInSight(bet.off ? "auto" : "smooth");
    } catch (error) {
      this.#game = null;
      this.#failed(/** @type {Error} */ (error), scripts);
    }
  }

  /**
   * Bring into sight, at the first click, what the other two need and what comes of them;
   * at once, where an address was opened.
   * @param {ScrollBehavior} behavior
   */
  #bringInSight(behavior) {
    const { top, bottom } = this.getBoundingClientRect();
    if (top >= 0 && bottom + RESULT <= window.innerHeight) return;
    this.scrollIntoView({ block: "start", behavior: this.still ? "auto" : behavior });
  }

  /** @param {Error} error @param {boolean} scripts whether they were loaded */
  #failed(error, scripts) {
    this.message.replaceChildren(
      h("p", { text: `The model could not be loaded. ${error.message}` }),
      // A browser keeps that a script failed: only a new page asks for it again.
      h("button", {
        type: "button", class: "live-button",
        text: scripts ? "Try again" : "Load the page again",
        onclick: () => (scripts ? this.#asked && void this.play(this.#asked) : location.reload()),
      }));
    set(this.message, { hidden: false });
  }
}

customElements.define("live-break-head", LiveBreakHead);
