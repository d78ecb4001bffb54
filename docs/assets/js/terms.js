/* Explain a term where a page first uses it, and leave the rest of the text alone. Tab
   reaches it, and its explanation opens as under a mouse. */
void (() => {
  const seen = new Set()
  for (const term of document.querySelectorAll("article abbr")) {
    const word = term.textContent
    if (seen.has(word) || term.closest("h1, h2, h3, a, summary")) term.replaceWith(word)
    else {
      seen.add(word)
      term.tabIndex = 0
    }
  }
})()
