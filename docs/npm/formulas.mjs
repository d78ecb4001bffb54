/* Set formulas with KaTeX, as HTML for the eye and MathML for everything else.
   engine/site/formulas.py calls this with NODE_MODULES as its argument: a list of
   [latex, in a line of its own] in JSON comes in, a list of HTML goes out. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const katex = createRequire(join(process.argv[2], "/"))("katex")
const formulas = JSON.parse(readFileSync(0, "utf-8"))
const set = ([latex, displayMode]) =>
  katex.renderToString(latex, { displayMode, throwOnError: false, strict: "ignore" })
process.stdout.write(JSON.stringify(formulas.map(set)))
