/* What is wrong with the page in the window: a list of sentences. Called by
   test_site_browser.py once the page has loaded. */
async () => {
  const math = document.querySelector(".arithmatex, .jp-RenderedMarkdown")
  while (math && !("mathSet" in document.documentElement.dataset))
    await new Promise((done) => setTimeout(done, 20))
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

  for (const image of document.images)
    if (!image.complete || !image.naturalWidth)
      wrong.push(`image not loaded: ${image.src}`)
    else if (!image.alt.trim()) wrong.push(`image without a text: ${image.src}`)

  const copy = "button.md-clipboard, .md-code__button"
  for (const block of all(".highlight pre > code"))
    if (block.checkVisibility() && !block.closest(".highlight").querySelector(copy))
      wrong.push(`no button to copy: ${block.textContent.trim().slice(0, 60)}`)

  for (const font of document.fonts)
    if (font.status === "error") wrong.push(`font not loaded: ${font.family}`)
  return wrong
}
