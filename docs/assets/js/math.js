/* Set the formulas of a page: those of Markdown, and those of a notebook's text.
   KaTeX is fetched by the pages that have some. */
document$.subscribe(async () => {
  const formulas = document.querySelectorAll(".arithmatex")
  const texts = document.querySelectorAll(".jp-RenderedMarkdown")
  if (!formulas.length && !texts.length) return

  const { base } = JSON.parse(document.getElementById("__config").textContent)
  const fetched = (tag, attributes) =>
    new Promise((resolve, reject) => {
      const element = Object.assign(document.createElement(tag), attributes)
      element.onload = resolve
      element.onerror = reject
      document.head.append(element)
    })
  const katex = new URL(`${base}/assets/katex/`, location.href)
  const style = { rel: "stylesheet", href: new URL("katex.min.css", katex) }
  await Promise.all([
    fetched("link", style),
    fetched("script", { src: new URL("katex.min.js", katex) }),
  ])
  await fetched("script", { src: new URL("auto-render.min.js", katex) })

  const delimiters = [
    { left: "$$", right: "$$", display: true },
    { left: "\\[", right: "\\]", display: true },
    { left: "\\(", right: "\\)", display: false },
  ]
  const dollars = [...delimiters, { left: "$", right: "$", display: false }]
  for (const formula of formulas) renderMathInElement(formula, { delimiters })
  for (const text of texts) renderMathInElement(text, { delimiters: dollars })
  document.documentElement.dataset.mathSet = "" // for the tests: all is in place
})
