/* Material's script measures the whole page: it is loaded after the first paint. Until it
   has run, its keys and its search work from here. What has the focus then, what is pointed
   at, and what was typed, it finds by itself. */
const { material } = document.currentScript.dataset
const field = document.querySelector(".md-search__input")
const search = document.getElementById("__search")
const until = new AbortController()
const { signal } = until

const find = (event) => {
  event.preventDefault() // "/" is no part of what is searched
  field.focus()
  field.select()
}
const follow = (relation) => {
  const link = document.querySelector(`link[rel=${relation}]`)
  if (link) location.href = link.href
}
const [before, after] = [() => follow("prev"), () => follow("next")]
const SHORTCUTS = new Map(Object.entries({
  "/": find, s: find, f: find, p: before, ",": before, n: after, ".": after,
  Enter: ({ target }) => target.matches("label") && target.click(),
}))
const TYPED = "input:not([type=radio]), select, textarea, [contenteditable]"

addEventListener("keydown", (event) => {
  const { key, target } = event
  if (event.metaKey || event.ctrlKey || event.isComposing) return
  if (!search.checked) {
    if (!target.closest(TYPED)) SHORTCUTS.get(key)?.(event)
  } else if (key === "Escape" || key === "Tab") {
    search.click()
    field.blur()
  }
}, { signal })
field.addEventListener("focus", () => search.checked || search.click(), { signal })
search.addEventListener("change", () => search.checked && field.focus(), { signal })

const load = () => {
  const script = document.createElement("script")
  script.src = material
  script.addEventListener("load", () => {
    until.abort()
    /* It waits for a page that has been read, and this one was read before. */
    setTimeout(() => document$.next(document))
  })
  document.head.append(script)
}
document.addEventListener("DOMContentLoaded", () => {
  if (document.hidden) load() // it is not painted
  else requestAnimationFrame(() => setTimeout(load))
})
