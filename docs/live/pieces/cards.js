// <live-cards>: five interview questions a day, of the chapters that the reader has
// opened. Whoever knows an answer sees the card later each time.

import { h, set } from "../ui/dom.js";
import { forget, keep, kept, lasts, names } from "../ui/kept.js";
import { LivePiece, hint } from "../ui/piece.js";
import { DAYS, answered, dayOf, hand, handOf, placesOf } from "./cards/boxes.js";
import { chapters, deck, nodes, sectionOf } from "./cards/deck.js";

/** @typedef {import("./cards/deck.js").Card} Card */
/** @typedef {import("./cards/deck.js").Chapter} Chapter */

const PLACES = "tformer cards", HAND = "tformer hand", READING = "tformer reading";

class LiveCards extends LivePiece {
  static style = new URL("cards.css", import.meta.url);

  /** @type {Chapter[]} */
  all = [];
  /** @type {Chapter[]} */
  opened = [];
  /** @type {Map<string, Card>} */
  cards = new Map();
  places = placesOf(null);
  hand = { day: dayOf(), ids: /** @type {string[]} */ ([]), done: 0 };

  from = h("p", { class: "live-hint" });
  count = h("p", { class: "cards-count" });
  question = h("p", { class: "cards-question" });
  answer = h("div", { class: "cards-answer" });
  show = h("summary", { text: "Show the answer" });
  fold = h("details", { class: "cards-fold", ontoggle: () => this.#unfolded() }, this.show, this.answer);
  knew = h("button", { type: "button", class: "live-button", text: "Knew it", onclick: () => this.#answer(true) });
  not = h("button", { type: "button", class: "live-button", text: "Not yet", onclick: () => this.#answer(false) });
  moves = h("div", { class: "cards-moves" }, this.knew, this.not);
  card = h("section", { class: "cards-card", "aria-label": "Card" }, this.count, this.question, this.fold, this.moves);
  done = h("p", { class: "cards-done", tabindex: -1 });
  boxes = h("p", { class: "live-note" });
  keeping = h("p", { class: "live-note" });
  empty = h("button", { type: "button", class: "live-button", text: "Forget all of it", onclick: () => void this.#forget() });

  async prepare() {
    this.all = await chapters();
    await this.#deal();
  }

  build() {
    return [hint("Answer aloud, then unfold the answer and say whether you knew it."), this.from,
      this.card, this.done, this.boxes, this.keeping, this.empty];
  }

  /** Take the cards of today: those that were taken, or new ones. */
  async #deal() {
    const reading = /** @type {{opened?: unknown} | null} */ (kept(READING));
    const opened = Array.isArray(reading?.opened) ? reading.opened : [];
    this.opened = this.all.filter(({ name }) => opened.includes(name));
    const cards = await deck(this.opened.length ? this.opened : this.all.slice(0, 1));
    this.cards = new Map(cards.map((card) => [card.id, card]));
    this.places = placesOf(kept(PLACES));
    const day = dayOf();
    const ids = [...this.cards.keys()];
    this.hand = handOf(kept(HAND), day, ids) ?? { day, ids: hand(ids, this.places, day), done: 0 };
  }

  update() {
    const { ids, done } = this.hand;
    const card = this.cards.get(ids[done] ?? "");
    const own = this.opened.length;
    this.from.textContent = own
      ? `From ${own === 1 ? "the chapter" : `the ${own} chapters`} that you have opened, of ${this.all.length} with questions.`
      : `You have opened no chapter in this browser yet: these are of the first one, ${this.all[0]?.title ?? ""}.`;
    set(this.card, { hidden: !card });
    set(this.done, { hidden: Boolean(card) });
    this.fold.open = false;
    if (card) {
      const place = this.places[card.id];
      this.count.replaceChildren(`Card ${done + 1} of ${ids.length} · `,
        h("a", { href: sectionOf(card.chapter), text: card.title }),
        place ? ` · box ${place.box}` : " · new");
      this.question.replaceChildren(...nodes(card.question, card.chapter));
      this.answer.replaceChildren(...nodes(card.answer, card.chapter));
    } else {
      this.done.textContent = ids.length
        ? `Done for today: ${ids.length} of ${ids.length}.`
        : "No card is due today. Open another chapter, or come again tomorrow.";
    }
    const inBox = DAYS.map((_, n) => Object.values(this.places).filter(({ box }) => box === n + 1).length);
    this.boxes.textContent = `Boxes 1 to ${DAYS.length}, which come again after ${DAYS.join(", ")} days: ${inBox.join(" · ")}.`;
    const many = names().length;
    this.keeping.textContent = lasts()
      ? `Kept in this browser, and sent nowhere: ${many ? names().map(told).filter((x, n, all) => all.indexOf(x) === n).join("; ") : "nothing"}.`
      : "This browser keeps nothing for the book: cards last as long as this page.";
    set(this.empty, { disabled: !many });
    this.#moves();
  }

  #moves() {
    set(this.moves, { hidden: !this.fold.open });
  }

  #unfolded() {
    this.#moves();
    if (this.fold.open) this.say("The answer is unfolded. Did you know it?");
  }

  /** @param {boolean} knew */
  #answer(knew) {
    const { ids, done, day } = this.hand;
    const id = ids[done];
    this.places = { ...placesOf(kept(PLACES)), [id]: answered(this.places[id], knew, day) };
    this.hand = { day, ids, done: done + 1 };
    keep(PLACES, this.places);
    keep(HAND, this.hand);
    this.update();
    const more = this.hand.done < ids.length;
    (more ? this.show : this.done).focus();
    const { box, due } = this.places[id];
    this.say(`Box ${box}: it comes again on ${due}. ${more ? `Card ${done + 2} of ${ids.length}.` : this.done.textContent}`);
  }

  async #forget() {
    forget();
    await this.#deal();
    this.update();
    this.say("Forgotten.");
  }
}

/** Say in words what is kept under a name. @param {string} name */
function told(name) {
  if (name === READING) return "chapters that you have opened, and where you stopped";
  if (name === PLACES || name === HAND) return "the boxes of your cards";
  return name.startsWith("tformer") ? "exercises that you have solved" : "what you have ticked";
}

customElements.define("live-cards", LiveCards);
