// Python with NumPy in a worker, which can be ended from outside.
//   in:  {start: Files}, then {id, action: "run", source, before} or
//        {id, action: "check", source, exercise}
//   out: {loaded: bytes}, {ready: true}, {text}, {id, result}, {failed: reason}

/** @typedef {import("./session.js").Files} Files */

const MEMORY = 512 * 16; // pages of 64 KiB: what is larger is a MemoryError
const WASM = "pyodide.asm.wasm";
const CACHES = "tformer python ";
const LIBRARY = "/lib/python3.12/site-packages";

const scope = /** @type {any} */ (self);
const network = self.fetch.bind(self);
/** @param {object} message */
const post = (message) => scope.postMessage(message);

class Bounded extends WebAssembly.Memory {
  /** @param {WebAssembly.MemoryDescriptor} given */
  constructor(given) {
    super({ ...given, maximum: Math.min(given.maximum ?? MEMORY, MEMORY) });
  }
}

/** Why Python cannot be had; `reason` is one of the session's. */
class Missing extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

let loaded = 0;
/** @type {Promise<Cache | null>} */
let cache = Promise.resolve(null);

/**
 * Open this version's cache, and forget older ones. The HTTP cache would ask the server
 * again after minutes: Python would be gone without a network.
 * @param {Files} files
 */
async function opened({ folder, package: zip }) {
  try {
    const name = CACHES + folder;
    for (const old of await caches.keys()) {
      if (old.startsWith(CACHES) && old !== name) await caches.delete(old);
    }
    const found = await caches.open(name);
    for (const { url } of await found.keys()) {
      if (!url.startsWith(folder) && url !== zip) await found.delete(url);
    }
    return found;
  } catch {
    return null; // not in this window
  }
}

/**
 * Fetch a file from the cache or the site, and tell how far it has come.
 * @param {string} url
 * @returns {Promise<Response>}
 */
async function fetched(url) {
  const kept = await cache;
  let answer = await kept?.match(url);
  if (!answer) {
    answer = await network(url).catch(() => {
      throw new Missing("offline");
    });
    if (!answer.ok) throw new Missing("missing");
    kept?.put(url, answer.clone()).catch(() => undefined);
  }
  const counted = new TransformStream({
    transform(part, next) {
      loaded += part.byteLength;
      post({ loaded });
      next.enqueue(part);
    },
  });
  return new Response(answer.body?.pipeThrough(counted));
}

/**
 * Load all, and return the modules running.py and reader.py.
 * @param {Files} files
 */
async function begin(files) {
  const { folder, package: zip } = files;
  cache = opened(files);
  WebAssembly.Memory = Bounded;
  // What Pyodide asks for itself.
  self.fetch = async (address, options) => {
    const url = address instanceof Request ? address.url : String(address);
    if (url === folder + WASM) {
      const { body } = await fetched(`${url}.bin`);
      const unpacked = body?.pipeThrough(new DecompressionStream("gzip"));
      return new Response(unpacked, { headers: { "Content-Type": "application/wasm" } });
    }
    return url.startsWith(folder) ? fetched(url) : network(address, options);
  };
  const bytes = [`${folder}numpy.zip`, zip].map(async (url) =>
    (await fetched(url)).arrayBuffer());
  const core = import(`${folder}pyodide.mjs`)
    .catch(() => Promise.reject(new Missing("offline")))
    .then(({ loadPyodide }) => loadPyodide({ indexURL: folder }));
  const [python, numpy, ours] = await Promise.all([core, ...bytes]);
  python.unpackArchive(numpy, "zip", { extractDir: LIBRARY });
  python.unpackArchive(ours, "zip", { extractDir: LIBRARY });
  const modules = ["running", "reader"].map((name) => python.pyimport(name));
  post({ ready: true });
  return modules;
}

/** @type {Promise<any> | null} */
let started = null;
/** @param {string} text */
const show = (text) => post({ text });

scope.onmessage = async (/** @type {MessageEvent} */ { data }) => {
  if (data.start) {
    started = begin(data.start);
    started.catch((error) => post({ failed: error.reason ?? "start", why: `${error}` }));
    return;
  }
  let running, reader;
  try {
    [running, reader] = await started;
  } catch {
    return; // has been told
  }
  const { id, action, source, exercise, before } = data;
  try {
    const result = action === "check"
      ? JSON.parse(reader.check(source, exercise, show))
      : running.run(source, show, before);
    post({ id, result });
  } catch (error) { // none of Python's: Python itself has ended
    post({ failed: "ended", why: `${error}` });
  }
};
