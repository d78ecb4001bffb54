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

addEventListener("beforeprint", () => {
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
