/* Sort a table by a column: a button in its head, once up and once down. Numbers have
   commas; a dash is no number, and stays below. */
void (() => {
  for (const table of document.querySelectorAll(".sortable table")) {
    const body = table.tBodies[0]
    for (const head of table.tHead.rows[0].cells) {
      if (body.rows[0].cells[head.cellIndex].querySelector("details")) continue
      const button = document.createElement("button")
      button.type = "button"
      button.append(...head.childNodes)
      head.append(button)
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending"
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null
        head.ariaSort = down ? "descending" : "ascending"
        const text = (row) => row.cells[head.cellIndex].textContent.trim()
        const number = (row) => Number(text(row).replaceAll(",", "") || NaN)
        const rows = [...body.rows]
        const numeric = rows.some((row) => !Number.isNaN(number(row)))
        const missing = (row) => numeric && Number.isNaN(number(row))
        rows.sort((a, b) => {
          if (missing(a) || missing(b)) return missing(a) - missing(b)
          const order = numeric
            ? number(a) - number(b)
            : text(a).localeCompare(text(b), undefined, { numeric: true })
          return down ? -order : order
        })
        body.append(...rows)
      })
    }
  }
})()
