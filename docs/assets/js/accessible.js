/* Names and keyboard access where Material leaves them out. */
void (() => {
  const search = document.querySelector("[data-md-component=search]")
  search?.setAttribute("aria-label", "Search")

  /* The list of results is a stop for Tab, but not while it is closed. */
  const results = search?.querySelector(".md-search__output")
  const open = document.getElementById("__search")
  const stop = () => results && (results.inert = !open.checked)
  open?.addEventListener("change", stop)
  stop()

  /* A section with a page of its own has an empty label in the navigation. */
  for (const nav of document.querySelectorAll("nav[aria-labelledby]")) {
    const label = document.getElementById(nav.getAttribute("aria-labelledby"))
    if (label?.textContent.trim()) continue
    nav.ariaLabel = nav.querySelector(".md-nav__title")?.textContent.trim() ?? ""
    nav.removeAttribute("aria-labelledby")
  }

  for (const item of document.querySelectorAll(".task-list-item"))
    item.querySelector("input")?.setAttribute("aria-label", item.textContent.trim())

  /* What scrolls sideways must be reachable by Tab, and then obeys the arrow keys. A box
     that is out of sight has no layout yet, and is not asked for one: code is measured by
     its longest line, of signs that are 0.6 em wide. */
  const wide =
    "pre > code, .arithmatex, .md-typeset__scrollwrap, .highlight-ipynb, .figure-box"
  const article = document.querySelector("article")
  const SIGN = 0.6 * 12 // px, of the smallest code
  const begun = new WeakSet()
  const begin = (box, column) => {
    begun.add(box)
    reach.observe(box)
    if (!box.matches("pre > code")) return
    const longest = Math.max(...box.textContent.split("\n").map((line) => line.length))
    if (longest * SIGN > column - 60) box.tabIndex = 0 // until it is seen
  }
  const reach = new ResizeObserver((entries) => {
    const boxes = entries.map(({ target }) => target)
    const seen = boxes.filter((box) => box.checkVisibility({ contentVisibilityAuto: true }))
    const scrolls = seen.map((box) => box.scrollWidth > box.clientWidth)
    for (const [n, box] of seen.entries())
      if (scrolls[n]) box.tabIndex = 0
      else box.removeAttribute("tabindex")
  })

  const nameless = ".md-annotation__index:not([aria-label])"

  /* Material draws annotations, buttons and table wrappers when they come into sight. */
  const mend = () => {
    const column = article?.clientWidth ?? 0
    for (const box of document.querySelectorAll(wide)) if (!begun.has(box)) begin(box, column)
    /* The buttons of a block are no navigation of the page. */
    for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])"))
      buttons.role = "none"
    for (const link of document.querySelectorAll(nameless))
      link.ariaLabel = `Note ${link.dataset.mdAnnotationId ?? ""}`.trim()
  }
  let waiting = false
  const soon = () => {
    if (waiting) return
    waiting = true
    setTimeout(() => {
      waiting = false
      mend()
    }, 50)
  }
  mend()
  const all = { childList: true, subtree: true }
  if (article) new MutationObserver(soon).observe(article, all)
})()
