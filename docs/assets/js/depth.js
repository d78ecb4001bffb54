/* The switch of a chapter: it opens or closes all folds below the core, here and on the
   pages that follow. What an address leads to is opened too. Without this file they are
   boxes that one opens by hand. */
void (() => {
  const folds = [...document.querySelectorAll("article details.depth:not(.drawing)")]
  const choices = [...document.querySelectorAll(".depth-switch input")]
  const NAME = "depth" // of what is stored: "all", or nothing

  const stored = () => {
    try {
      return localStorage.getItem(NAME)
    } catch {} // a private window
  }
  const store = (all) => {
    try {
      if (all) localStorage.setItem(NAME, "all")
      else localStorage.removeItem(NAME)
    } catch {}
  }

  const show = (all) => {
    for (const choice of choices) choice.checked = (choice.value === "all") === all
    for (const fold of folds) fold.open = all
  }

  /* A browser looks for a place before the fold around it is open, and stays where it is. */
  const reveal = () => {
    const place = document.getElementById(location.hash.slice(1)) // ids are plain letters
    if (!place?.closest("details.depth")) return
    for (let box = place; (box = box.closest("details:not([open])")); ) box.open = true
    requestAnimationFrame(() => {
      const { top } = place.getBoundingClientRect()
      if (top < 0 || top > innerHeight) place.scrollIntoView()
    })
  }

  if (choices.length && stored() === "all") show(true)
  for (const choice of choices)
    choice.addEventListener("change", () => {
      store(choice.value === "all")
      show(choice.value === "all")
    })
  addEventListener("hashchange", reveal)
  reveal()
})()
