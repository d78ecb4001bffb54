/* Cut the fonts down to what the site sets: Latin letters, and the weights in use.
   install.py calls this: node fonts.mjs NODE_MODULES TARGET KATEX */
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"

const [, , modules, target, katex] = process.argv
const subset = createRequire(join(modules, "/"))("subset-font")

/* The letters of each file are the `unicode-range` in docs/assets/css/fonts.css: those of
   English, and the rest of Latin 1, which a browser fetches where a page has them. The
   files with `ext` in their name have all other Latin letters, and stay whole. */
const BASIC = [
  [0x20, 0x7e], [0xa0], [0xb0, 0xb3], [0xb5], [0xb7], [0xd7], [0xe9], [0x2000, 0x206f],
  [0x2122], [0x2191], [0x2193], [0x2212], [0x2215], [0xfeff], [0xfffd],
]
const MORE = [
  [0xa1, 0xaf], [0xb4], [0xb6], [0xb8, 0xd6], [0xd8, 0xe8], [0xea, 0xff], [0x131],
  [0x152, 0x153], [0x2bb, 0x2bc], [0x2c6], [0x2da], [0x2dc], [0x304], [0x308], [0x329],
  [0x20ac],
]
const letters = (ranges) =>
  ranges
    .flatMap(([first, last = first]) =>
      Array.from({ length: last - first + 1 }, (_, n) => first + n),
    )
    .map((code) => String.fromCodePoint(code))
    .join("")

const WEIGHTS = { wght: { min: 400, max: 700 } }
const FILES = [
  // the file here, the family, its style, the axis; no axis: all weights are kept
  ["source-serif-4-roman", "source-serif-4", "normal", WEIGHTS],
  ["source-serif-4-italic", "source-serif-4", "italic", { wght: 400 }],
  ["source-sans-3-roman", "source-sans-3", "normal"],
  ["source-code-pro-regular", "source-code-pro", "normal", { wght: 400 }],
  ["source-code-pro-semibold", "source-code-pro", "normal", { wght: 600 }],
  ["source-code-pro-italic", "source-code-pro", "italic", { wght: 400 }],
]

await mkdir(target, { recursive: true })
for (const [name, family, style, variationAxes] of FILES) {
  const path = `@fontsource-variable/${family}/files/${family}-latin-wght-${style}.woff2`
  const options = { targetFormat: "woff2", ...(variationAxes && { variationAxes }) }
  const whole = await readFile(join(modules, path))
  for (const [end, ranges] of [["", BASIC], ["-more", MORE]]) {
    const font = await subset(whole, letters(ranges), options)
    await writeFile(join(target, `${name}${end}.woff2`), font)
  }
}

/* KaTeX's main font in two parts as well: what most formulas need, and the rest. */
const FORMULAS = [
  [0x20, 0x7e], [0xb7], [0xd7], [0x200b], [0x2026], [0x2032], [0x2192], [0x2202], [0x2208],
  [0x2211, 0x2212], [0x221e], [0x2223], [0x2248], [0x2260, 0x2261], [0x2264, 0x2265],
  [0x2299], [0x22a4], [0x22c5],
]
const REST = FORMULAS.map(([first, last = first], n) => {
  const next = FORMULAS[n + 1]?.[0] ?? 0x10000
  return [last + 1, next - 1]
})
const named = (ranges) =>
  ranges
    .map(([first, last = first]) => [first, last].map((code) => code.toString(16)))
    .map(([first, last]) => (first === last ? `U+${first}` : `U+${first}-${last}`))
    .join(",")

const MAIN = "KaTeX_Main-Regular"
const style = join(katex, "katex.min.css")
const css = await readFile(style, "utf-8")
const face = css.match(new RegExp(`@font-face\\{[^}]*${MAIN}[^}]*\\}`))[0]
const main = await readFile(join(katex, "fonts", `${MAIN}.woff2`))
const faces = []
for (const [end, ranges] of [["", FORMULAS], ["-more", REST]]) {
  const font = await subset(main, letters(ranges), { targetFormat: "woff2" })
  await writeFile(join(katex, "fonts", `${MAIN}${end}.woff2`), font)
  const source = face.replace(`${MAIN}.woff2`, `${MAIN}${end}.woff2`)
  faces.push(source.replace(/\}$/, `;unicode-range:${named(ranges)}}`))
}
await writeFile(style, css.replace(face, faces.join("")))
