// <live-positions>: the clocks of a position, turned by a slider or by their hands, and
// the row of the table that they make.

import { button, choice, slider } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { fixed } from "../ui/format.js";
import { LivePiece, hint } from "../ui/piece.js";
import { numbers } from "../ui/table.js";
import { clock } from "./positions/clock.js";
import { row } from "./positions/row.js";
import { speed, tableRow } from "./positions/table.js";

const LAST = 200; // the slider's end
const START = 2; // "man", the third word of the chapter's sentence
const WORDS = ["dog", "bites", "man"];
const BEAT = 350; // ms from one position to the next while it plays
const COLOURS = ["blue", "orange", "green", "red"];

class LivePositions extends LivePiece {
  static style = new URL("positions.css", import.meta.url);

  width = 8;
  position = START;
  clocks = /** @type {ReturnType<typeof clock>[]} */ ([]);
  face = h("div", { class: "positions-clocks" });
  row = row();
  numbers = numbers({ caption: "The clocks at this position" });
  playing = 0;

  build() {
    this.slider = slider({
      label: "position", min: 0, max: LAST, value: this.position,
      format: (p) => (p < WORDS.length ? `${p} (${WORDS[p]})` : String(p)),
      on: (p) => this.go(p),
    });
    this.button = button("Play", () => (this.playing ? this.stop() : this.play()));
    const width = choice({
      label: "width, d_model", value: "8",
      options: ["4", "8"].map((value) => ({ value, label: value })),
      on: (value) => {
        this.width = Number(value);
        this.wind();
        this.update();
      },
    });
    this.wind();
    return [
      hint(h("b", {}, "Move the position"), ", or take a hand and turn it. After how " +
        "many places does the fast clock look the same again? Does the slow one tell " +
        "those two places apart?"),
      h("div", { class: "live-row" }, this.slider.element, this.button, width.element),
      this.face,
      h("p", { class: "positions-caption" }, "The row that is added to the token: of " +
        "each clock how far the tip of its hand is to the right, the sine, and how far " +
        "up, the cosine."),
      this.row.element, this.numbers.element,
    ];
  }

  /** Make the clocks of the width. */
  wind() {
    this.clocks = Array.from({ length: this.width / 2 }, (_, i) => clock({
      colour: COLOURS[i], turn: 2 * Math.PI / speed(i, this.width), number: i,
      on: (places) => this.go(this.position + places),
    }));
    this.face.replaceChildren(...this.clocks.map(({ element }) => element));
  }

  /** @param {number} position */
  go(position) {
    const to = Math.min(LAST, Math.max(0, Math.round(position)));
    if (to === this.position) return;
    this.position = to;
    this.update();
    if (!this.playing) this.say(`Position ${to}: ${this.#entries().join(", ")}.`);
  }

  play() {
    if (this.position === LAST) this.go(0);
    this.playing = window.setInterval(() => {
      if (!this.isConnected || this.position === LAST) this.stop();
      else this.go(this.position + 1);
    }, BEAT);
    if (this.button) this.button.textContent = "Pause";
  }

  stop() {
    window.clearInterval(this.playing);
    this.playing = 0;
    if (this.button) this.button.textContent = "Play";
  }

  #entries() {
    return tableRow(this.position, this.width).map((x) => fixed(x, 4));
  }

  update() {
    const { position, width } = this;
    if (this.slider) this.slider.value = position;
    this.clocks.forEach((each, i) => each.update(position * speed(i, width)));
    this.row.update(tableRow(position, width), COLOURS);
    const entries = this.#entries();
    this.numbers.update({
      columns: ["clock", "angle", "sine", "cosine", "positions for one turn"],
      rows: this.clocks.map((_, i) => [
        i, fixed(position * speed(i, width), 2), entries[2 * i], entries[2 * i + 1],
        fixed(2 * Math.PI / speed(i, width), 0),
      ]),
    });
  }
}

customElements.define("live-positions", LivePositions);
