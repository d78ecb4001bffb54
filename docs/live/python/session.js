// The one Python of a page: a worker that is loaded, asked, stopped, and begun again.

/** @typedef {{folder: string, package: string, bytes: number}} Files whole addresses */
/** @typedef {{id: number, done: (result: any) => void,
 *   failed: (error: Failure) => void, show: (text: string) => void}} Job */
/** @typedef {"absent" | "loading" | "ready" | "running"} State */
/** @typedef {"run" | "check"} Action */
/** @typedef {{action: Action, source: string, exercise?: string, before: string}} Asked
 *   the code, and what runs before it */

const SILENCE = 60_000; // ms without a sign while it loads
const LIMIT = 60_000; // ms for one run

export const REASONS = {
  old: "This browser cannot run Python: it is too old, or WebAssembly is switched off.",
  offline: "Python could not be loaded: the network does not answer. Try again later.",
  missing: "Python could not be loaded: a file of it is not on the server.",
  silence: "Python did not start within a minute. Try again, or use the command.",
  start: "Python could not be started in this browser.",
  ended: "Your code ended Python itself. A new one starts.",
  limit: "Stopped after 60 seconds. A new Python starts.",
  stopped: "Stopped. A new Python starts.",
};
/** @typedef {keyof typeof REASONS} Reason */

/** Why something gave no result. */
export class Failure extends Error {
  /** @param {Reason} reason */
  constructor(reason) {
    super(REASONS[reason]);
    this.reason = reason;
  }
}

/** Tells "change" when its state, or how much is loaded, has changed. */
export class Session extends EventTarget {
  /** @type {State} */
  state = "absent";
  loaded = 0;
  /** @type {Worker | null} */
  #worker = null;
  /** @type {Job | null} */
  #job = null;
  #jobs = 0;
  #timer = 0;

  /** @param {Files} files */
  constructor(files) {
    super();
    this.files = files;
  }

  /** Begin to load, unless it has begun. */
  start() {
    if (this.#worker) return;
    if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") {
      throw new Failure("old");
    }
    this.loaded = 0;
    const address = new URL("worker.js", import.meta.url);
    const worker = this.#worker = new Worker(address, { type: "module" });
    worker.onmessage = ({ data }) => this.#hear(data);
    worker.onerror = () => this.#fail(navigator.onLine ? "start" : "offline");
    worker.postMessage({ start: this.files });
    this.#wait(SILENCE, "silence");
    this.#be("loading");
  }

  /**
   * Run code; the promise fails with a `Failure`.
   * @param {Asked} asked
   * @param {(text: string) => void} show gets what it prints
   * @returns {Promise<any>}
   */
  ask(asked, show) {
    return new Promise((done, failed) => {
      this.start();
      const id = ++this.#jobs;
      this.#job = { id, done, failed, show };
      this.#worker?.postMessage({ id, ...asked });
      if (this.state === "ready") this.#run();
    });
  }

  /** Whether something runs or waits to run. */
  get busy() {
    return this.#job !== null;
  }

  /** End what runs: nothing else ends an endless loop. */
  stop() {
    const loading = this.state === "loading";
    this.#fail("stopped");
    if (!loading) this.start(); // from the cache, in seconds
  }

  /** @param {any} data */
  #hear(data) {
    if (data.loaded !== undefined) {
      this.loaded = data.loaded;
      this.#wait(SILENCE, "silence");
      this.#be(this.state);
    } else if (data.ready) {
      if (this.#job) this.#run();
      else this.#rest();
    } else if (data.text !== undefined) {
      this.#job?.show(data.text);
    } else if (data.failed) {
      if (data.why) console.warn(`Python: ${data.why}`);
      this.#fail(data.failed);
      if (data.failed === "ended") this.start();
    } else if (this.#job?.id === data.id) {
      const job = this.#job;
      this.#job = null;
      this.#rest();
      job?.done(data.result);
    }
  }

  #run() {
    this.#wait(LIMIT, "limit");
    this.#be("running");
  }

  #rest() {
    clearTimeout(this.#timer);
    this.#be("ready");
  }

  /** @param {number} time @param {Reason} reason */
  #wait(time, reason) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#fail(reason);
      if (reason === "limit") this.start();
    }, time);
  }

  /** @param {Reason} reason */
  #fail(reason) {
    clearTimeout(this.#timer);
    this.#worker?.terminate();
    this.#worker = null;
    const job = this.#job;
    this.#job = null;
    this.#be("absent");
    const failure = new Failure(reason);
    if (job) job.failed(failure);
    else if (reason !== "stopped") {
      this.dispatchEvent(new CustomEvent("failure", { detail: failure }));
    }
  }

  /** @param {State} state */
  #be(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}
