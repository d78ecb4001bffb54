// The one script that pages load. A figure such as
//   <figure class="live" data-live="masks"> … the static picture … </figure>
// gets the element <live-masks> of pieces/masks.js when the reader comes near it. The
// static picture stays until the first live one is drawn, and wherever that fails. With
// `data-keep` it stays above the piece: where the text speaks of it. With `data-wait` a
// piece that fills the page waits for the reader's first move, or for a look of some
// seconds: the page is there at once, and the piece does not hold it up. An address that
// names a piece, such as `#break-head=…`, leads to it, wherever it stands.

const NEAR = "600px";
const LOOK = 6000; // ms
const MOVES = ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "touchstart"];

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      watcher.unobserve(entry.target);
      const figure = /** @type {HTMLElement} */ (entry.target);
      // An address with a state is opened to see the state; of the piece that it names.
      const waits = "wait" in figure.dataset && (named !== null || !location.hash.includes("="));
      void (waits ? moved() : Promise.resolve()).then(() => enliven(figure));
    }
  }
}, { rootMargin: NEAR });

const given = new URLSearchParams(location.hash.slice(1));
const figures = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-live]"));
const named = [...figures].find(({ dataset }) => given.has(dataset.live ?? "")) ?? null;
for (const figure of figures) if (figure !== named) watcher.observe(figure);
if (named) {
  named.scrollIntoView({ block: "center" });
  void enliven(named);
}

/** @returns {Promise<void>} that ends with the reader's first move, or after a look */
function moved() {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(looked);
      for (const move of MOVES) window.removeEventListener(move, end);
      done();
    };
    const looked = setTimeout(end, LOOK);
    for (const move of MOVES) window.addEventListener(move, end, { passive: true });
  });
}

/** @param {HTMLElement} figure */
async function enliven(figure) {
  try {
    await begin(figure);
  } catch (error) {
    tell(figure);
    throw error;
  }
}

/**
 * Say below the static picture that the live one is missing. A browser keeps that a script
 * failed, so the page is loaded again: the address holds what was set.
 * @param {HTMLElement} figure
 */
function tell(figure) {
  figure.classList.add("live-missing");
  const text = document.createElement("p");
  text.className = "live-told";
  text.setAttribute("role", "status");
  text.textContent = "The live form of this picture could not be loaded. ";
  const again = document.createElement("button");
  again.type = "button";
  again.className = "md-button";
  again.textContent = "Load the page again";
  again.addEventListener("click", () => location.reload());
  text.append(again);
  figure.append(text);
}

/** @param {HTMLElement} figure */
async function begin(figure) {
  const name = figure.dataset.live ?? "";
  if (!/^[a-z-]+$/.test(name)) throw new Error(`data-live (${name}) is no name`);
  const piece = document.createElement(`live-${name}`);
  piece.addEventListener("live-ready", () => figure.classList.add("live-on"));
  piece.addEventListener("live-failed", (event) => {
    piece.remove();
    tell(figure);
    throw /** @type {CustomEvent} */ (event).detail;
  });
  // Not at the top: a page that is read without its pieces loads this file alone.
  const [{ loadStyle }] = await Promise.all([
    import("./ui/piece.js"),
    import(`./pieces/${name}.js`),
  ]);
  await loadStyle(new URL("live.css", import.meta.url));
  figure.append(piece);
}
