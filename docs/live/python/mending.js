// Beside the empty function: whole solutions in which one mistake is planted. Each is
// kept apart from what the reader writes, and from the others.

import { button, choice } from "../ui/controls.js";
import { h } from "../ui/dom.js";
import { keep, progress } from "../ui/progress.js";

/** @typedef {import("./verdict.js").Mistake & {source: string}} Fault */

/**
 * Load the faulty solutions of an exercise; where there are none, it does without.
 * @param {string} name
 * @returns {Promise<Fault[]>}
 */
export async function faultsOf(name) {
  const file = `faults/${name.replaceAll(" ", "-")}.json`;
  try {
    const answer = await fetch(new URL(file, import.meta.url));
    return answer.ok ? await answer.json() : [];
  } catch {
    return [];
  }
}

export class Mending {
  /** @type {Fault | null} */
  fault = null; // that stands in the field; none if the reader writes it all

  /**
   * @param {string} name of the exercise
   * @param {Fault[]} faults
   * @param {(fault: Fault | null) => void} put shows one, or what the reader writes
   */
  constructor(name, faults, put) {
    this.name = name;
    this.faults = faults;
    this.put = put;
    const task = choice({
      label: "Your task",
      options: [
        { value: "write", label: "Write it" },
        { value: "mend", label: "Mend a planted fault" }],
      value: "write",
      on: (value) => this.#show(value === "mend" ? this.#next(0) : null),
    }).element;
    this.told = h("span", { role: "status" });
    this.another = button("Another fault", () =>
      this.#show(this.#next(faults.indexOf(/** @type {Fault} */ (this.fault)) + 1)));
    this.row = h("div", { class: "python-row" }, this.told, this.another);
    this.row.hidden = true;
    this.controls = [/** @type {HTMLFieldSetElement} */ (task), this.another];
    this.elements = faults.length ? [task, this.row] : [];
  }

  /** Remember that a fault was mended. @param {Fault} fault */
  done(fault) {
    keep(`${this.name} mended`, [...this.#mended().add(fault.id)].join(" "));
  }

  #mended() {
    return new Set((progress()[`${this.name} mended`] ?? "").split(" ").filter(Boolean));
  }

  /** Return a fault that was not mended, if one is left. @param {number} from */
  #next(from) {
    const { faults } = this;
    const mended = this.#mended();
    const turned = faults.map((_, i) => faults[(from + i) % faults.length]);
    return turned.find((fault) => !mended.has(fault.id)) ?? turned[0];
  }

  /** @param {Fault | null} fault */
  #show(fault) {
    this.fault = fault;
    this.put(fault);
    this.row.hidden = !fault;
    if (!fault) return;
    const number = this.faults.indexOf(fault) + 1;
    this.told.textContent = `Fault ${number} of ${this.faults.length}: this solution ` +
      "has one mistake. Find it, mend it, then check. What you wrote yourself is kept.";
  }
}
