/* Draw formulas with MathJax, each as an SVG that needs no font: for readers of books
   that do not know MathML. engine/book/formulas.py calls this with NODE_MODULES as its
   argument: a list of [latex, in a line of its own] in JSON comes in, a list of SVG, or
   of {error}, goes out. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const { init } = createRequire(join(process.argv[2], "/"))("mathjax")
const MathJax = await init({
  loader: { load: ["input/tex", "output/svg"] },
  svg: { fontCache: "none" },
  tex: {
    packages: { "[-]": ["noundefined", "noerrors"] },
    formatError: (_jax, error) => { throw error },
  },
})
const draw = ([latex, display]) => {
  try {
    const box = MathJax.tex2svg(latex, { display })
    return MathJax.startup.adaptor.innerHTML(box)
  } catch (error) {
    return { error: error.message }
  }
}
const formulas = JSON.parse(readFileSync(0, "utf-8"))
process.stdout.write(JSON.stringify(formulas.map(draw)))
