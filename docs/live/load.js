// The one script that pages load. A figure such as
//   <figure class="live" data-live="masks"> … the static picture … </figure>
// gets the element <live-masks> of pieces/masks.js when the reader comes near it. The
// static picture stays until the first live one is drawn, and wherever that fails. With
// `data-keep` it stays above the piece: where the text speaks of it.

import { loadStyle } from "./ui/piece.js";

const NEAR = "600px";

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      watcher.unobserve(entry.target);
      void enliven(/** @type {HTMLElement} */ (entry.target));
    }
  }
}, { rootMargin: NEAR });

for (const figure of document.querySelectorAll("[data-live]")) watcher.observe(figure);

/** @param {HTMLElement} figure */
async function enliven(figure) {
  const name = figure.dataset.live ?? "";
  if (!/^[a-z-]+$/.test(name)) throw new Error(`data-live (${name}) is no name`);
  const piece = document.createElement(`live-${name}`);
  piece.addEventListener("live-ready", () => figure.classList.add("live-on"));
  piece.addEventListener("live-failed", (event) => {
    piece.remove();
    throw /** @type {CustomEvent} */ (event).detail;
  });
  await Promise.all([
    import(`./pieces/${name}.js`),
    loadStyle(new URL("live.css", import.meta.url)),
  ]);
  figure.append(piece);
}
