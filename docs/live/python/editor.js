// The editor of one exercise: a field, Check, Run, Stop, Reset, a verdict and an output.

import { button } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { loadStyle } from "../ui/piece.js";
import { keep } from "../ui/progress.js";
import { codeField, goToLine, indent } from "./field.js";
import { Failure, Session } from "./session.js";
import { verdictOf } from "./verdict.js";

/** @typedef {import("./session.js").Files} Files */

const DRAFT = "tformer draft ";
/** @type {Session | null} */
let session = null; // one for all editors of a page

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/**
 * Put an editor in the place of some code; begin to load Python.
 * @param {HTMLElement} place
 * @param {Files} files
 */
export async function edit(place, files) {
  await Promise.all(["../live.css", "python.css"].map((name) =>
    loadStyle(new URL(name, import.meta.url))));
  session ??= new Session(files);
  const editor = new Editor(place, session);
  editor.begin();
}

class Editor {
  #mine = false; // what runs was asked here
  #output = "";
  #frame = 0;

  /**
   * @param {HTMLElement} place
   * @param {Session} python
   */
  constructor(place, python) {
    this.place = place;
    this.python = python;
    this.exercise = place.dataset.python ?? "";
    this.name = place.dataset.function ?? this.exercise;
    const code = place.querySelector("pre code")?.textContent ?? "";
    // Its docstring stays above the field: a phone has no room for it twice.
    this.starter = code.replace(/^ +""".*?"""\n/ms, "");
    this.field = codeField({
      label: `Your ${this.name}`,
      value: this.#draft() ?? this.starter,
      on: () => this.#keep(this.field.value),
      submit: () => void this.#ask("check"),
    });
    this.check = button("Check", () => void this.#ask("check"));
    this.run = button("Run", () => void this.#ask("run"));
    this.stop = button("Stop", () => this.python.stop());
    this.reset = button("Reset", () => this.#reset());
    this.go = button("", () => goToLine(this.field, Number(this.go.value)));
    this.told = h("span", { class: "python-state", role: "status" });
    this.bar = h("progress", { max: python.files.bytes, "aria-label": "Loaded" });
    this.verdict = h("div", { class: "python-verdict", role: "status" });
    this.paper = h("pre", {
      class: "python-output", tabindex: 0, role: "region", "aria-label": "Output" });
  }

  begin() {
    // What has a keyboard has these keys; a phone has these buttons.
    const keys = ["Indent", "Dedent"].map((label, back) => {
      const key = button(label, () => indent(this.field, back === 1));
      key.addEventListener("pointerdown", (event) => event.preventDefault());
      return key;
    });
    this.check.classList.add("python-first");
    for (const each of this.place.querySelectorAll(".python-begin, .python-done")) {
      each.remove();
    }
    const code = this.place.querySelector(".highlight");
    code?.after(h("div", { class: "live-piece python-editor" },
      this.field,
      h("div", { class: "python-keys" }, ...keys),
      h("p", { class: "python-help", text:
        "Tab indents, Escape and then Tab leaves the field, Ctrl + Enter checks." }),
      h("div", { class: "python-row" },
        this.check, this.run, this.stop, this.reset, this.go),
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
    this.check.disabled = this.run.disabled = busy;
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

  /** @param {"run" | "check"} action */
  async #ask(action) {
    if (this.python.busy) return;
    this.#clear();
    this.#mine = true;
    try {
      const asked = { action, source: this.field.value, exercise: this.exercise };
      const result = await this.python.ask(asked, (text) => this.#print(text));
      if (action === "check") this.#judge(result);
      else if (result && !this.#output) this.#print("It ran, and printed nothing.\n");
      const { differs, raises = "" } = result;
      const wrong = result === true ? "" : this.#output;
      this.#point(differs ? differs.message + raises : wrong);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#mine = false;
      this.#update();
    }
  }

  /** @param {import("./verdict.js").Verdict} verdict what the judge returned */
  #judge(verdict) {
    this.verdict.replaceChildren(...verdictOf(verdict, this.exercise));
    this.verdict.dataset.verdict = verdict.verdict;
    if (verdict.verdict !== "right") return;
    keep(this.exercise, "right");
    this.place.dispatchEvent(new CustomEvent("python-right", { bubbles: true }));
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
    this.#output = "";
    this.#point("");
    this.paper.textContent = "";
    this.verdict.replaceChildren();
    delete this.verdict.dataset.verdict;
  }

  /** @param {string} text */
  #print(text) {
    this.#output += text;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.paper.textContent = this.#output;
    });
  }

  /** @param {string} text */
  #say(text) {
    // While it loads the numbers run; only the first of each sentence is read out.
    const quiet = text.split(":")[0] === this.told.textContent?.split(":")[0];
    this.told.setAttribute("aria-live", quiet ? "off" : "polite");
    this.told.textContent = text;
  }

  #reset() {
    const mine = this.field.value;
    if (mine !== this.starter && !confirm("Put the code of the beginning back?")) return;
    this.field.value = this.starter;
    this.field.dispatchEvent(new Event("input"));
    this.#keep(null);
    this.#clear();
  }

  #draft() {
    try {
      return localStorage.getItem(DRAFT + this.exercise);
    } catch {
      return null;
    }
  }

  /** @param {string | null} text */
  #keep(text) {
    try {
      if (text === null) localStorage.removeItem(DRAFT + this.exercise);
      else localStorage.setItem(DRAFT + this.exercise, text);
    } catch {
      // it lasts as long as the page
    }
  }
}
