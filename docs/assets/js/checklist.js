/* Remember what is ticked on a page, by what stands beside the box. Where nothing can be
   stored, the boxes are boxes. */
document$.subscribe(() => {
  const key = `ticked ${location.pathname}`
  const read = () => {
    try {
      return new Set(JSON.parse(localStorage.getItem(key)) ?? [])
    } catch {
      return new Set()
    }
  }
  const ticked = read()
  for (const item of document.querySelectorAll("article .task-list-item")) {
    const box = item.querySelector("input")
    const text = item.textContent.trim().replace(/\s+/g, " ")
    if (!box) continue
    box.checked = box.defaultChecked || ticked.has(text)
    box.addEventListener("change", () => {
      const now = read()
      if (box.checked) now.add(text)
      else now.delete(text)
      try {
        if (now.size) localStorage.setItem(key, JSON.stringify([...now]))
        else localStorage.removeItem(key)
      } catch {} // a private window, or no room
    })
  }
})
