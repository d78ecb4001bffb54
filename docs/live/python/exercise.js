// The editor of one exercise: what all editors have, Check, and a verdict.

import { button } from "../ui/controls.js";
import { keep } from "../ui/progress.js";
import { Editor, pythonOf } from "./editor.js";
import { verdictOf } from "./verdict.js";

/**
 * Put an editor below the code that an exercise begins with.
 * @param {HTMLElement} place
 * @param {import("./session.js").Files} files
 */
export async function edit(place, files) {
  const python = await pythonOf(files);
  for (const each of place.querySelectorAll(".python-begin, .python-done")) {
    each.remove();
  }
  const code = /** @type {Element} */ (place.querySelector(".highlight"));
  new ExerciseEditor(place, python).begin(code);
}

class ExerciseEditor extends Editor {
  /**
   * @param {HTMLElement} place
   * @param {import("./session.js").Session} python
   */
  constructor(place, python) {
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
  }

  /**
   * @override
   * @param {import("./verdict.js").Verdict} verdict what the judge returned
   */
  judge(verdict) {
    this.verdict.replaceChildren(...verdictOf(verdict, this.name));
    this.verdict.dataset.verdict = verdict.verdict;
    if (verdict.verdict === "right") {
      keep(this.name, "right");
      this.place.dispatchEvent(new CustomEvent("python-right", { bubbles: true }));
    }
    const { differs, raises = "" } = verdict;
    return differs ? differs.message + raises : this.output;
  }
}
