/* Names and keyboard access where Material leaves them out. */
document$.subscribe(() => {
  const search = document.querySelector("[data-md-component=search]")
  search?.setAttribute("aria-label", "Search")

  for (const item of document.querySelectorAll(".task-list-item"))
    item.querySelector("input")?.setAttribute("aria-label", item.textContent.trim())

  /* What scrolls sideways must be reachable by Tab, to be scrolled by the arrow keys. */
  const wide = "pre > code, .arithmatex, .md-typeset__scrollwrap, .highlight-ipynb"
  const reach = new ResizeObserver((entries) => {
    for (const { target } of entries)
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0
      else target.removeAttribute("tabindex")
  })

  /* Material draws annotations and table wrappers after the page has loaded. */
  const mend = () => {
    for (const box of document.querySelectorAll(wide)) reach.observe(box)
    for (const link of document.querySelectorAll(".md-annotation__index:not([aria-label])"))
      link.setAttribute("aria-label", `Note ${link.dataset.mdAnnotationId ?? ""}`.trim())
  }
  mend()
  const article = document.querySelector("article")
  if (article) new MutationObserver(mend).observe(article, { childList: true, subtree: true })
})
