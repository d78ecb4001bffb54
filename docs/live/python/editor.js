// What all editors of a page share: a field, Run, Stop, Reset, and an output.

import { button } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { loadStyle } from "../ui/piece.js";
import { codeField, goToLine, indent } from "./field.js";
import { Failure, Session } from "./session.js";

/** @typedef {import("./session.js").Files} Files */
/** @typedef {import("./session.js").Action} Action */

const DRAFT = "tformer draft ";
/** @type {Session | null} */
let session = null; // one for all editors of a page

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/**
 * Return the page's one Python, with the styles of its editors.
 * @param {Files} files
 */
export async function pythonOf(files) {
  await Promise.all(["../live.css", "python.css"].map((name) =>
    loadStyle(new URL(name, import.meta.url))));
  session ??= new Session(files);
  return session;
}

export class Editor {
  #mine = false; // what runs was asked here
  /** @type {(HTMLButtonElement | HTMLFieldSetElement)[]} */
  held = []; // what else waits while Python is busy
  #frame = 0;
  output = "";

  /**
   * @param {Session} python
   * @param {{name: string, label: string, starter: string, before?: string,
   *   first: Action, more?: HTMLButtonElement[]}} given
   *   the name that drafts are kept by; what runs before the code; what Ctrl + Enter
   *   does; more buttons, before Run
   */
  constructor(python, { name, label, starter, before = "", first, more = [] }) {
    this.python = python;
    this.name = name;
    this.draft = name; // by which the code in the field is kept
    this.starter = starter;
    this.before = before;
    this.first = first;
    this.field = codeField({
      label,
      value: this.#kept() ?? starter,
      on: () => this.#keep(this.field.value),
      submit: () => void this.ask(first),
    });
    this.run = button("Run", () => void this.ask("run"));
    this.asking = [...more, this.run]; // what asks Python
    this.stop = button("Stop", () => this.python.stop());
    this.reset = button("Reset", () => this.#reset());
    this.go = button("", () => goToLine(this.field, Number(this.go.value)));
    this.told = h("span", { class: "python-state", role: "status" });
    this.bar = h("progress", { max: python.files.bytes, "aria-label": "Loaded" });
    this.verdict = h("div", { class: "python-verdict", role: "status" });
    this.paper = h("pre", {
      class: "python-output", tabindex: 0, role: "region", "aria-label": "Output" });
  }

  /**
   * Put the editor behind an element, and begin to load Python.
   * @param {Element} element
   * @param {...HTMLElement} above what stands above the field
   */
  begin(element, ...above) {
    // What has a keyboard has these keys; a phone has these buttons.
    const keys = ["Indent", "Dedent"].map((label, back) => {
      const key = button(label, () => indent(this.field, back === 1));
      key.addEventListener("pointerdown", (event) => event.preventDefault());
      return key;
    });
    this.asking[0].classList.add("python-first");
    element.after(h("div", { class: "live-piece python-editor" },
      ...above,
      this.field,
      h("div", { class: "python-keys" }, ...keys),
      h("p", { class: "python-help", text: "Tab indents, Escape and then Tab leaves the " +
        `field, Ctrl + Enter ${this.first}s.` }),
      h("div", { class: "python-row" },
        ...this.asking, this.stop, this.reset, this.go),
      h("div", { class: "python-row" }, this.told, this.bar),
      this.verdict, this.paper));
    this.python.addEventListener("change", () => this.#update());
    this.python.addEventListener("failure", (event) =>
      this.#fail(/** @type {CustomEvent} */ (event).detail));
    this.#point("");
    this.field.focus({ preventScroll: true });
    try {
      this.python.start();
    } catch (error) {
      this.#fail(error);
    }
    this.#update();
  }

  #update() {
    const { state, loaded, files, busy } = this.python;
    const others = busy && !this.#mine;
    for (const each of [...this.asking, ...this.held]) each.disabled = busy;
    this.stop.disabled = !this.#mine && state !== "loading";
    this.bar.hidden = state !== "loading";
    this.bar.value = loaded;
    const begins = loaded < files.bytes
      ? `Python is loading: ${megabytes(loaded)} of ${megabytes(files.bytes)}.`
      : "Python is starting.";
    this.#say({
      absent: "",
      loading: `${begins}${this.#mine ? " Then your code runs." : ""}`,
      ready: "Python is ready.",
      running: others ? "Python runs the code of another exercise." : "Your code runs.",
    }[state]);
  }

  /** @param {Action} action */
  async ask(action) {
    if (this.python.busy) return;
    this.#clear();
    this.#mine = true;
    try {
      const { field: { value: source }, before, name } = this;
      const asked = { action, source, before, exercise: name };
      const result = await this.python.ask(asked, (text) => this.#print(text));
      if (action === "run" && result && !this.output) {
        this.#print("It ran, and printed nothing.\n");
      }
      this.#point(action === "run" ? (result ? "" : this.output) : this.judge(result));
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#mine = false;
      this.#update();
    }
  }

  /**
   * Show what came of a check.
   * @param {any} _verdict
   * @returns {string} what may say in which line something went wrong
   */
  judge(_verdict) {
    throw new Error("nothing is judged here");
  }

  /** @param {unknown} error */
  #fail(error) {
    if (!(error instanceof Failure)) throw error;
    this.verdict.replaceChildren(h("p", { text: error.message }));
    this.verdict.dataset.verdict = "failed";
  }

  /** @param {string} text what may say in which line something went wrong */
  #point(text) {
    const found = [...text.matchAll(/(?:<your code>", |\()line (\d+)/g)].at(-1);
    this.go.hidden = !found;
    if (!found) return;
    this.go.value = found[1];
    this.go.textContent = `Go to line ${found[1]}`;
  }

  #clear() {
    this.output = "";
    this.#point("");
    this.paper.textContent = "";
    this.verdict.replaceChildren();
    delete this.verdict.dataset.verdict;
  }

  /** @param {string} text */
  #print(text) {
    this.output += text;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.paper.textContent = this.output;
    });
  }

  /** @param {string} text */
  #say(text) {
    // While it loads the numbers run; only the first of each sentence is read out.
    const quiet = text.split(":")[0] === this.told.textContent?.split(":")[0];
    this.told.setAttribute("aria-live", quiet ? "off" : "polite");
    this.told.textContent = text;
  }

  /**
   * Put other code into the field, as the reader left it; what stood there is kept.
   * @param {string} draft the name that it is kept by
   * @param {string} starter what it begins with
   */
  put(draft, starter) {
    this.draft = draft;
    this.starter = starter;
    this.#fill(this.#kept());
  }

  #reset() {
    const mine = this.field.value;
    if (mine !== this.starter && !confirm("Put the code of the beginning back?")) return;
    this.#fill(null);
  }

  /** @param {string | null} kept */
  #fill(kept) {
    this.field.value = kept ?? this.starter;
    this.field.dispatchEvent(new Event("input"));
    this.#keep(kept);
    this.#clear();
  }

  #kept() {
    try {
      return localStorage.getItem(DRAFT + this.draft);
    } catch {
      return null;
    }
  }

  /** @param {string | null} text */
  #keep(text) {
    try {
      if (text === null) localStorage.removeItem(DRAFT + this.draft);
      else localStorage.setItem(DRAFT + this.draft, text);
    } catch {
      // it lasts as long as the page
    }
  }
}
