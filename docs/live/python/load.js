// The one script of a page that runs Python. Each exercise, and with `data-before` each
// block that readers may edit,
//   <div data-python="rotary" data-folder="…" data-package="…" data-bytes="…"> … </div>
// gets a button; what the button needs is loaded when it is pressed, and not before.

import { progress } from "../ui/progress.js";

const places = /** @type {HTMLElement[]} */ (
  [...document.querySelectorAll("[data-python]")]);

for (const place of places) {
  const { folder, package: zip, bytes, python, before } = place.dataset;
  if (python && progress()[python] === "right") {
    const done = document.createElement("p");
    done.className = "python-done";
    done.textContent = "✓ You have this right.";
    place.prepend(done);
  }
  if (!folder || !zip) continue; // built without Python: the page says so
  const begin = document.createElement("button");
  begin.type = "button";
  begin.className = "md-button";
  const isBlock = before !== undefined;
  begin.textContent = isBlock ? "Run and edit" : "Write it here";
  const size = (Number(bytes) / 1e6).toFixed(1);
  const told = document.createElement("p");
  told.className = "python-begin";
  const what = document.createElement("span");
  what.textContent = isBlock
    ? `Loads Python: ${size} MB, once.`
    : `Python with NumPy then runs in this page: ${size} MB, once.`;
  told.append(begin, what);
  const [root, archive] = [folder, zip].map((x) => new URL(x, location.href).href);
  begin.addEventListener("click", async () => {
    begin.disabled = true;
    try {
      const { edit } = await (isBlock ? import("./block.js") : import("./exercise.js"));
      await edit(place, { folder: root, package: archive, bytes: Number(bytes) });
    } catch (error) {
      begin.disabled = false;
      what.textContent = "The editor could not be loaded: is there a network?";
      throw error;
    }
  });
  if (isBlock) place.append(told);
  else place.querySelector(".highlight")?.after(told);
}
