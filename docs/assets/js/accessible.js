/* Names and keyboard access where Material leaves them out. */
document$.subscribe(() => {
  const search = document.querySelector("[data-md-component=search]")
  search?.setAttribute("aria-label", "Search")

  for (const item of document.querySelectorAll(".task-list-item"))
    item.querySelector("input")?.setAttribute("aria-label", item.textContent.trim())

  /* What scrolls sideways must be reachable by Tab, and then obeys the arrow keys. */
  const wide =
    "pre > code, .arithmatex, .md-typeset__scrollwrap, .highlight-ipynb, .figure-box"
  const reach = new ResizeObserver((entries) => {
    for (const { target } of entries)
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0
      else target.removeAttribute("tabindex")
  })

  const nameless = ".md-annotation__index:not([aria-label])"

  /* Material draws annotations and table wrappers after the page has loaded. */
  const mend = () => {
    for (const box of document.querySelectorAll(wide)) reach.observe(box)
    /* A page has one navigation; the buttons of a block are none. */
    for (const buttons of document.querySelectorAll(".md-code__nav"))
      buttons.role = "group"
    for (const link of document.querySelectorAll(nameless))
      link.ariaLabel = `Note ${link.dataset.mdAnnotationId ?? ""}`.trim()
  }
  mend()
  const article = document.querySelector("article")
  const all = { childList: true, subtree: true }
  if (article) new MutationObserver(mend).observe(article, all)
})
