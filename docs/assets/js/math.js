/* Set the formulas of a page: those of Markdown, and those of a notebook's text. */
document$.subscribe(() => {
  const delimiters = [
    { left: "$$", right: "$$", display: true },
    { left: "\\[", right: "\\]", display: true },
    { left: "\\(", right: "\\)", display: false },
  ]
  const inline = { left: "$", right: "$", display: false }
  for (const formula of document.querySelectorAll(".arithmatex"))
    renderMathInElement(formula, { delimiters })
  for (const text of document.querySelectorAll(".jp-RenderedMarkdown"))
    renderMathInElement(text, { delimiters: [...delimiters, inline] })
})
