/* Print what is folded: open each box, and close it again afterwards. */
let opened = []
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("article details:not([open])")]
  for (const box of opened) box.open = true
})
addEventListener("afterprint", () => {
  for (const box of opened) box.open = false
})
