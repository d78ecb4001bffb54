// The editor of one exercise: what all editors have, Check, and a verdict.

import { button } from "../ui/controls.js";
import { keep } from "../ui/progress.js";
import { Editor, pythonOf } from "./editor.js";
import { faultsOf, Mending } from "./mending.js";
import { mendedOf, verdictOf } from "./verdict.js";

/** @typedef {import("./mending.js").Fault} Fault */

/**
 * Put an editor below the code that an exercise begins with.
 * @param {HTMLElement} place
 * @param {import("./session.js").Files} files
 */
export async function edit(place, files) {
  const name = place.dataset.python ?? "";
  const [python, faults] = await Promise.all([pythonOf(files), faultsOf(name)]);
  for (const each of place.querySelectorAll(".python-begin, .python-done")) {
    each.remove();
  }
  const code = /** @type {Element} */ (place.querySelector(".highlight"));
  const editor = new ExerciseEditor(place, python, faults);
  editor.begin(code, ...editor.mending.elements);
}

class ExerciseEditor extends Editor {
  /**
   * @param {HTMLElement} place
   * @param {import("./session.js").Session} python
   * @param {Fault[]} faults
   */
  constructor(place, python, faults) {
    const name = place.dataset.python ?? "";
    const code = place.querySelector("pre code")?.textContent ?? "";
    super(python, {
      name,
      label: `Your ${place.dataset.function ?? name}`,
      // Its docstring stays above the field: a phone has no room for it twice.
      starter: code.replace(/^ +""".*?"""\n/ms, ""),
      first: "check",
      more: [button("Check", () => void this.ask("check"))],
    });
    this.place = place;
    const { starter } = this;
    this.mending = new Mending(name, faults, (fault) => fault
      ? this.put(`${name} ${fault.id}`, fault.source) : this.put(name, starter));
    this.held = this.mending.controls;
  }

  /**
   * @override
   * @param {import("./verdict.js").Verdict} verdict what the judge returned
   */
  judge(verdict) {
    const right = verdict.verdict === "right";
    const { fault } = this.mending;
    this.verdict.replaceChildren(...(right && fault
      ? mendedOf(fault) : verdictOf(verdict, this.name, fault !== null)));
    this.verdict.dataset.verdict = verdict.verdict;
    if (right && fault) this.mending.done(fault);
    else if (right) {
      keep(this.name, "right");
      this.place.dispatchEvent(new CustomEvent("python-right", { bubbles: true }));
    }
    const { differs, raises = "" } = verdict;
    return differs ? differs.message + raises : this.output;
  }
}
