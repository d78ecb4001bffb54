/* Write one weight of a variable web font as TrueType, which matplotlib reads.
   engine/run/fonts.py calls this: node face.mjs NODE_MODULES FONT WEIGHT TARGET */
import { readFile, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"

const [, , modules, font, weight, target] = process.argv
const subset = createRequire(join(modules, "/"))("subset-font")
const letters = String.fromCodePoint(...Array.from({ length: 0x3000 }, (_, n) => n))
const options = { targetFormat: "truetype", variationAxes: { wght: Number(weight) } }
await writeFile(target, await subset(await readFile(font), letters, options))
