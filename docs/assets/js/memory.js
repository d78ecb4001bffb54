/* Remember in this browser which chapters were opened, and where the reader stopped, and
   show it on the home. Nothing is sent. Where nothing can be stored, nothing is shown. */
void (() => {
  const KEY = "tformer reading" // {opened: [name, …], last: {path, title, id, heading}}
  const TOP = 120 // px, of which the page's head has half
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY))
      const opened = Array.isArray(kept?.opened) ? kept.opened : []
      const last = /^\/(?!\/)[^"<>\s]*$/.test(kept?.last?.path) ? kept.last : null
      return { opened, last }
    } catch {
      return { opened: [], last: null }
    }
  }
  const store = (value) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(value))
    } catch {} // a private window, or no room
  }
  const words = (heading) => {
    const copy = heading.cloneNode(true)
    for (const link of copy.querySelectorAll(".headerlink")) link.remove()
    return copy.textContent.trim()
  }

  if (/\/chapters\/[^/]+\/$/.test(location.pathname)) remember()
  const chapters = document.querySelector(".chapters")
  if (chapters) show(chapters)

  function remember() {
    const path = location.pathname
    const title = words(document.querySelector("article h1"))
    const { opened, last } = read()
    const name = path.split("/").filter(Boolean).pop()
    if (!opened.includes(name)) opened.push(name)
    store({ opened, last: last?.path === path ? last : { path, title, id: "", heading: "" } })

    /* The section that is read: the last whose heading has come to the top. */
    const headings = [...document.querySelectorAll("article :is(h2, h3)[id]")]
    let waiting = 0
    const stop = () => {
      if (!title || !document.contains(headings[0])) return
      const above = headings.filter((x) => x.getBoundingClientRect().top < TOP)
      const at = above.pop()
      const heading = at ? words(at) : ""
      store({ ...read(), last: { path, title, id: at?.id ?? "", heading } })
    }
    addEventListener("scroll", () => {
      clearTimeout(waiting)
      waiting = setTimeout(stop, 400)
    }, { passive: true })
  }

  function show(table) {
    const { opened, last } = read()
    if (!opened.length && !last) return
    const start = document.querySelector(".home-actions .md-button--primary")
    const [text, href] = [start?.textContent, start?.getAttribute("href")]
    const note = document.createElement("p")
    note.className = "home-memory"
    if (last) {
      const place = last.heading ? `${last.title}: ${last.heading}` : last.title
      const address = last.id ? `${last.path}#${last.id}` : last.path
      const link = document.createElement("a")
      link.href = address
      link.textContent = place
      note.append("Where you stopped: ", link, " · ")
      if (start) {
        start.textContent = "Continue reading"
        start.href = address
        start.title = place
      }
    }
    const links = [...table.querySelectorAll("td:first-child a")]
    const names = links.map((link) => link.pathname.split("/").filter(Boolean).pop())
    const known = opened.filter((name) => names.includes(name)).length
    note.append(`${known} of ${links.length} chapters opened · `)
    const forget = document.createElement("button")
    forget.type = "button"
    forget.textContent = "Forget this"
    forget.addEventListener("click", () => {
      try {
        localStorage.removeItem(KEY)
      } catch {}
      note.remove()
      start?.removeAttribute("title")
      if (start && text && href) Object.assign(start, { textContent: text, href })
      links[0]?.focus({ preventScroll: true })
    })
    note.append(forget)
    table.before(note)
  }
})()
