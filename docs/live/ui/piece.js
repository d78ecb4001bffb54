// What all live pieces share: they build once, draw at each change, and tell when ready.

import { h } from "./dom.js";
import { speaker } from "./say.js";

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/**
 * Load a stylesheet once; done when it holds.
 * @param {string | URL} address
 */
export function loadStyle(address) {
  const href = String(address);
  const known = styles.get(href);
  if (known) return known;
  const link = h("link", { rel: "stylesheet", href });
  const done = new Promise((resolve, reject) => {
    link.onload = () => resolve(undefined);
    link.onerror = () => reject(new Error(`${href} was not loaded`));
  });
  document.head.append(link);
  styles.set(href, /** @type {Promise<void>} */ (done));
  return /** @type {Promise<void>} */ (done);
}

/**
 * A live piece: a custom element that stands in for a static figure.
 *
 * A piece defines `build`, which returns what stands in it, and `update`, which writes
 * all numbers anew from its state. `prepare` may fetch what it needs first.
 */
export class LivePiece extends HTMLElement {
  /** The stylesheet of the piece, `new URL("name.css", import.meta.url)`, or nothing.
   * @type {URL | null} */
  static style = null;

  #started = false;
  #speaker = speaker();
  /** Settles when the first picture is drawn, or fails with what went wrong. */
  ready = Promise.resolve();

  connectedCallback() {
    if (this.#started) return;
    this.#started = true;
    this.classList.add("live-piece");
    this.ready = this.#start();
    this.ready.then(
      () => this.dispatchEvent(new CustomEvent("live-ready", { bubbles: true })),
      (error) => this.dispatchEvent(
        new CustomEvent("live-failed", { bubbles: true, detail: error })),
    );
  }

  async #start() {
    const { style } = /** @type {typeof LivePiece} */ (this.constructor);
    await Promise.all([style ? loadStyle(style) : null, this.prepare()]);
    this.append(...this.build(), this.#speaker.element);
    await this.update();
  }

  /** The `data-*` attributes of the figure. @returns {DOMStringMap} */
  get options() {
    const figure = /** @type {HTMLElement | null} */ (this.closest("[data-live]"));
    return (figure ?? this).dataset;
  }

  /** Whether the reader wants nothing to move. */
  get still() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** Fetch what is needed before the first picture. @returns {Promise<void>} */
  async prepare() {}

  /** Return what stands in the piece. @returns {Node[]} */
  build() {
    throw new Error(`${this.localName} has no build()`);
  }

  /** Write all that is shown from the state; a promise is waited for. @returns {any} */
  update() {}

  /**
   * Tell a screen reader what changed, once the reader pauses.
   * @param {string} text
   */
  say(text) {
    this.#speaker.say(text);
  }
}

/**
 * The sentence above a piece: what to try.
 * @param {...(Node | string)} text
 */
export function hint(...text) {
  return h("p", { class: "live-hint" }, ...text);
}
