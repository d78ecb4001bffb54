/* What is wrong with the page in the window: a list of sentences. Called by
   test_site_browser.py once the page has loaded. */
async () => {
  /* Material's script comes after the paint, and then mounts part by part. */
  await new Promise((done) => {
    const ask = () => window.document$
      ? document$.subscribe(() => setTimeout(done, 100)) : setTimeout(ask, 20)
    ask()
  })

  /* All of the page is laid out, as if somebody had scrolled through it. */
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(".md-typeset * { content-visibility: visible !important }")
  document.adoptedStyleSheets = [sheet]
  document.querySelector(".highlight")?.scrollIntoView()
  await new Promise((done) => setTimeout(done, 100))
  await document.fonts.ready

  const wrong = []
  const all = (selector) => document.querySelectorAll(selector)
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth)
    wrong.push(`wider than the window by ${root.scrollWidth - root.clientWidth} px`)

  for (const box of all(".arithmatex"))
    if (!box.querySelector(".katex")) wrong.push(`formula not set: ${box.textContent}`)
  for (const box of all(".katex-error")) wrong.push(`bad formula: ${box.title}`)
  const code = "code, pre, annotation, script, style"
  const article = document.querySelector("article")
  const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    if (/\\\(|\\\[|\$\$/.test(text.data) && !text.parentElement.closest(code))
      wrong.push(`formula not seen: ${text.data.trim()}`)

  for (const image of document.images) image.loading = "eager"
  await Promise.allSettled([...document.images].map((image) => image.decode()))
  for (const image of document.images)
    if (!image.complete || !image.naturalWidth)
      wrong.push(`image not loaded: ${image.src}`)
    else if (!image.alt.trim()) wrong.push(`image without a text: ${image.src}`)

  const copy = "button.md-clipboard, .md-code__button"
  const near = (box) => {
    const { top, bottom } = box.getBoundingClientRect()
    return bottom > 0 && top < innerHeight && box.checkVisibility()
  }
  const bare = (block) => near(block) && !block.closest(".highlight").querySelector(copy)
  // They come with Material's script, after the first paint: on a busy machine late.
  for (let i = 0; i < 50 && [...all(".highlight pre > code")].some(bare); i++)
    await new Promise((done) => setTimeout(done, 100))
  for (const block of all(".highlight pre > code"))
    if (bare(block))
      wrong.push(`no button to copy: ${block.textContent.trim().slice(0, 60)}`)

  for (const font of document.fonts)
    if (font.status === "error" && !font.family.includes(" like ")) // see fonts.css
      wrong.push(`font not loaded: ${font.family}`)
  return wrong
}
