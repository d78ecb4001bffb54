// The one script of a page whose exercises can be answered in it. Each
//   <div data-exercise="masks 1"><script type="application/json">…</script></div>
// gets its fields when the reader comes near it.

const NEAR = "800px";

const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    void import("./fields.js").then(({ answerable }) =>
      answerable(/** @type {HTMLElement} */ (target)));
  }
}, { rootMargin: NEAR });

for (const place of document.querySelectorAll("[data-exercise]")) watcher.observe(place);
