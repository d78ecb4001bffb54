// The editor of a block of the page, in its place; what the block prints there stays below.

import { h } from "../ui/dom.js";
import { Editor, pythonOf } from "./editor.js";

/**
 * Put an editor in the place of the block whose output stands above `place`.
 * @param {HTMLElement} place
 * @param {import("./session.js").Files} files
 */
export async function edit(place, files) {
  const python = await pythonOf(files);
  const output = /** @type {Element} */ (place.previousElementSibling);
  const block = /** @type {Element} */ (output.previousElementSibling);
  const { python: name = "", before = "" } = place.dataset;
  const starter = (block.querySelector("code")?.textContent ?? "").trimEnd();
  const label = "The code of this block";
  const editor = new Editor(python, { name, label, starter, before, first: "run" });
  const lines = before.split("\n").filter((line) => line.trim()).length;
  const needed = h("details", { class: "live-numbers" },
    h("summary", {
      text: `What it needs from above: ${lines === 1 ? "a line" : `${lines} lines`}` }),
    h("pre", { tabindex: 0, role: "region", "aria-label": "Needed code", text: before }));
  place.remove();
  block.classList.add("python-edited");
  output.before(h("p", { class: "python-shown", text: "The page’s own code prints:" }));
  editor.begin(block, ...(before ? [needed] : []));
}
