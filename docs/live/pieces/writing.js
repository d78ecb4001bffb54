// The home's piece: a date is typed, and written token by token, with the lines of a head.
//
// The page stays light: the model and all that runs it come when the reader takes hold of
// the piece, or has had it before the eyes for a while and the page has nothing to do.

import { entry } from "../explorer/entry.js";
import { h, set } from "../ui/dom.js";
import { LivePiece } from "../ui/piece.js";

// ms before the eyes, until the model is fetched unasked: the first picture has ended
const GLANCE = 6000;

/** @typedef {import("../explorer/room.js").Room} Room */

export class LiveWriting extends LivePiece {
  /** @type {Promise<Room | null> | null} */
  #room = null;
  /** What the reader did before the model was there. @type {[string, import("../explorer/room.js").How] | null} */
  #asked = null;

  async prepare() {
    // As the eye goes, so goes Tab: the field, the picture, and the caption's links last.
    this.closest("figure")?.querySelector(":scope > figcaption")?.before(this);
  }

  build() {
    const picture = this.closest("figure")?.querySelector("svg.writing");
    this.entry = entry({
      text: picture?.getAttribute("data-text") ?? "jeudi 3 mai 1979",
      onText: (text, how) => {
        this.#asked = [text, how];
        void this.#wake();
      },
    });
    const start = h("button", {
      type: "button", class: "live-button writing-start", text: "▶ Watch it write",
      onclick: () => {
        this.#asked = [this.entry?.input.value ?? "", "play"];
        void this.#wake();
      },
    });
    this.desk = h("div", { class: "writing-desk" }, start);
    this.message = h("div", { class: "writing-message", role: "alert", hidden: true });
    for (const sign of ["pointerdown", "focusin"]) {
      this.addEventListener(sign, () => void this.#wake());
    }
    this.#wakeWhenSeen();
    return [this.entry.element, this.message, this.desk, this.entry.examples];
  }

  #wakeWhenSeen() {
    const { connection } = /** @type {{connection?: {saveData?: boolean}}} */ (navigator);
    if (connection?.saveData) return;
    let waiting = 0;
    const idle = window.requestIdleCallback ?? ((/** @type {() => void} */ done) => setTimeout(done, 200));
    new IntersectionObserver((entries, watcher) => {
      window.clearTimeout(waiting);
      if (!entries.some((each) => each.isIntersecting)) return;
      waiting = window.setTimeout(() => {
        watcher.disconnect();
        idle(() => void this.#wake());
      }, GLANCE);
    }, { threshold: 0.6 }).observe(this.closest("figure") ?? this);
  }

  async #wake() {
    this.#room ??= this.#open();
    const room = await this.#room;
    if (!room || !this.#asked) return;
    const [text, how] = this.#asked;
    this.#asked = null;
    room.read(text, how);
  }

  /** @returns {Promise<Room | null>} */
  async #open() {
    const message = /** @type {HTMLElement} */ (this.message);
    let scripts = false;
    try {
      const { openRoom } = await import("../explorer/room.js");
      scripts = true;
      const room = await openRoom({
        text: this.entry?.input.value ?? "",
        still: this.still,
        link: this.closest("figure")?.querySelector("a.writing-open") ?? null,
        onReading: (reading) => this.entry?.update(reading),
        say: (text) => this.say(text),
      });
      this.desk?.replaceChildren(...room.elements);
      set(message, { hidden: true });
      this.closest("figure")?.classList.add("writing-on");
      room.draw();
      return room;
    } catch (error) {
      this.#room = null;
      message.replaceChildren(
        h("p", { text: `The model could not be loaded. ${/** @type {Error} */ (error).message}` }),
        // A browser keeps that a script failed: only a new page asks for it again.
        scripts
          ? h("button", { type: "button", class: "live-button", text: "Try again", onclick: () => void this.#wake() })
          : h("button", { type: "button", class: "live-button", text: "Load the page again", onclick: () => location.reload() }));
      set(message, { hidden: false });
      return null;
    }
  }
}

customElements.define("live-writing", LiveWriting);
