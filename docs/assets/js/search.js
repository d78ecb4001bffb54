/* What Material's search leaves out: it says when it could not be loaded, and Enter waits
   for the answer to all that was typed. search-worker.js tells of both. */
void (() => {
  const field = document.querySelector(".md-search__input")
  const results = document.querySelector(".md-search-result")
  const told = results?.querySelector(".md-search-result__meta")
  if (!field || !told) return

  let answered, entered
  new BroadcastChannel("search").addEventListener("message", ({ data }) => {
    if (document.activeElement !== field) return // it is of another tab
    if (data.failed)
      told.textContent = "The search could not be loaded. Type on, and it is tried again."
    answered = data.answered
    if (entered && answered === field.value) setTimeout(open, 50) // once they are drawn
  })

  /* Enter opens what scores most. What stands there may still answer half a word. */
  const open = () => {
    entered = false
    const score = (link) => Number(link.querySelector("[data-md-score]")?.dataset.mdScore)
    const links = [...results.querySelectorAll("[href]")]
    links.sort((one, other) => score(other) - score(one))[0]?.click()
  }
  field.addEventListener("input", () => {
    entered = false
    field.dispatchEvent(new Event("keyup")) // Material asks at keys alone; a menu pastes
  })
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !field.value.trim()) return
    event.preventDefault()
    event.stopPropagation()
    entered = true
    if (answered === field.value) open()
  })

  /* Material waits for the worker without an end. */
  const beginning = told.textContent
  field.addEventListener("focus", () =>
    setTimeout(() => {
      if (told.textContent === beginning)
        told.textContent = "The search could not be loaded. Load the page again."
    }, 8000),
  )
})()
