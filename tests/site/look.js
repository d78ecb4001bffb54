/* What is wrong with the page in the window: a list of sentences. Called by
   test_site_browser.py once the page has loaded. */
async () => {
  const math = document.querySelector(".arithmatex, .jp-RenderedMarkdown")
  while (math && !("mathSet" in document.documentElement.dataset))
    await new Promise((done) => setTimeout(done, 20))
  await document.fonts.ready
  const wrong = []
  const shown = (element) => element.checkVisibility()
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth)
    wrong.push(`wider than the window by ${root.scrollWidth - root.clientWidth} px`)

  for (const box of document.querySelectorAll(".arithmatex"))
    if (!box.querySelector(".katex")) wrong.push(`formula not set: ${box.textContent}`)
  for (const box of document.querySelectorAll(".katex-error"))
    wrong.push(`formula with an error: ${box.title}`)
  const text = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT)
  while (text.nextNode())
    if (/\\\(|\\\[|\$\$/.test(text.currentNode.data) && !text.currentNode.parentElement.closest("code, pre, annotation, script, style"))
      wrong.push(`formula not seen: ${text.currentNode.data.trim()}`)

  for (const image of document.images)
    if (!image.complete || !image.naturalWidth) wrong.push(`image not loaded: ${image.src}`)
    else if (!image.alt.trim()) wrong.push(`image without alternative text: ${image.src}`)

  for (const code of document.querySelectorAll(".highlight pre > code"))
    if (shown(code) && !code.closest(".highlight").querySelector("button.md-clipboard, .md-code__button"))
      wrong.push(`no button to copy: ${code.textContent.trim().slice(0, 60)}`)

  const fonts = new Set([...document.fonts].filter((x) => x.status === "error").map((x) => x.family))
  for (const family of fonts) wrong.push(`font not loaded: ${family}`)
  return wrong
}
