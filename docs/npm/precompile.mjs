// Turn each .py of some zips into a .pyc, by the very Python that will read it:
//   node precompile.mjs FOLDER_OF_PYODIDE FILE.zip …
// Compiling the sources would cost a reader's phone seconds at each start. NumPy and
// Pyodide need their docstrings; the standard library goes without, for 0.4 MB.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// A .pyc that is never compared with its source, and the same bytes each time. Packed
// here, because not every host compresses archives on their way.
const COMPILE = `
import io, re, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

def compiled(data):
    new = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(new, "w") as out:
        for item in old.infolist():
            name, content = item.filename, old.read(item)
            if name.endswith(".py"):
                plain = re.match("numpy/|_?pyodide/", name)
                code = compile(content, name, "exec", optimize=0 if plain else 2)
                name = name + "c"
                content = bytes(_code_to_hash_pyc(code, bytes(8), False))
            made = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            made.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(made, content, compresslevel=9)
    return new.getvalue()

lambda data: compiled(bytes(data.to_py()))
`;

const [folder, ...files] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: folder });
const compiled = python.runPython(COMPILE);
for (const file of files) {
  writeFileSync(file, compiled(new Uint8Array(readFileSync(file))).toJs());
}
