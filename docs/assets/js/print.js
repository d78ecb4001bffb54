/* Print what is folded: open each box, and close it again afterwards. */
let opened = []

/* A figure that was not near the screen yet has not been loaded, and paper does not wait
   for it. So it is put into the page at once, without its fonts, which would come late. */
const fetchNow = (image) => {
  const request = new XMLHttpRequest()
  request.open("GET", image.src, false)
  request.send()
  const svg = request.responseText.replace(/@font-face\{[^}]*\}/g, "")
  if (request.status === 200) image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`
}

/* So is a font of formulas that no formula in sight has asked for: large parentheses. */
const fontsNow = () => {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
  for (const rule of rules) {
    if (!(rule instanceof CSSFontFaceRule)) continue
    const of = (name) => rule.style.getPropertyValue(name).replace(/^["']|["']$/g, "")
    const family = of("font-family")
    const [, url] = of("src").match(/url\(["']?([^"')]+)/) ?? []
    if (!family.startsWith("KaTeX") || !url) continue
    const request = new XMLHttpRequest()
    request.open("GET", new URL(url, rule.parentStyleSheet.href), false)
    request.overrideMimeType("text/plain; charset=x-user-defined") // bytes, as signs
    request.send()
    if (request.status !== 200) continue
    const bytes = Uint8Array.from(request.responseText, (sign) => sign.charCodeAt() & 255)
    const { fontStyle: style, fontWeight: weight } = rule.style
    document.fonts.add(new FontFace(family, bytes, { style, weight }))
  }
}
let hasFonts = false

addEventListener("beforeprint", () => {
  if (!hasFonts && document.querySelector(".katex-display")) fontsNow()
  hasFonts = true
  opened = [...document.querySelectorAll("article details:not([open])")]
  for (const box of opened) box.open = true
  for (const image of document.querySelectorAll("article img[loading=lazy]")) {
    image.loading = "eager"
    if (!image.naturalWidth && new URL(image.src).pathname.endsWith(".svg")) fetchNow(image)
  }
})
addEventListener("afterprint", () => {
  for (const box of opened) box.open = false
})
