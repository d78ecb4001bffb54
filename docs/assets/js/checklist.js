/* Remember what is ticked on a page, by what stands beside the box, and show in the
   navigation and on the home how much of each page that is. All of a line can be clicked.
   Where nothing can be stored, the boxes are boxes. */
void (() => {
  const here = location.pathname
  const stored = (name) => {
    try {
      return JSON.parse(localStorage.getItem(name))
    } catch {
      return null
    }
  }
  const store = (name, value) => {
    try {
      if (value) localStorage.setItem(name, JSON.stringify(value))
      else localStorage.removeItem(name)
    } catch {} // a private window, or no room
  }

  const read = () => new Set(stored(`ticked ${here}`) ?? [])
  const ticked = read()
  const items = [...document.querySelectorAll("article .task-list-item:has(input)")]
  for (const item of items) {
    const box = item.querySelector("input")
    const text = item.textContent.trim().replace(/\s+/g, " ")
    box.checked = box.defaultChecked || ticked.has(text)
    box.addEventListener("change", () => {
      const now = read()
      if (box.checked) now.add(text)
      else now.delete(text)
      store(`ticked ${here}`, now.size && [...now])
      store(`boxes ${here}`, now.size && items.length)
      show()
    })
    item.addEventListener("click", ({ target }) => {
      if (!target.closest("a, label, input, button") && !getSelection().toString()) box.click()
    })
  }

  /* "3/5" or "✓" behind each link to a page with ticks. */
  const show = () => {
    const links = ".md-sidebar--primary .md-nav__link[href], .chapters td:first-child a"
    for (const link of document.querySelectorAll(links)) {
      const { pathname } = new URL(link.href)
      const count = stored(`ticked ${pathname}`)?.length ?? 0
      const all = stored(`boxes ${pathname}`) ?? 0
      link.querySelector(".ticked")?.remove()
      if (!count || !all) continue
      const mark = document.createElement("span")
      mark.className = "ticked"
      mark.textContent = count < all ? `${count}/${all}` : "✓"
      mark.title = `${count} of ${all} ticked`
      mark.setAttribute("aria-label", mark.title)
      mark.setAttribute("role", "img")
      link.append(mark)
    }
  }
  show()
})()
