/**
 * Checkpoints: a folder of config.json and model.safetensors.
 *
 * Twin of tformer/training/checkpoint.py. The weights are held to what config.json says
 * of them, size and hash, before anything is read from them. A file of safetensors is 8 bytes, the length of
 * the header; the header, JSON that says where each tensor lies; and the numbers.
 */

import { Matrix } from "./linear.js";

/**
 * What config.json says under "tformer", as far as it is read here.
 * @typedef {object} Manifest
 * @property {number} bytes of the weights
 * @property {string} sha256 of the weights
 * @property {{characters: string}} vocabulary
 * @property {{without?: string[], seed?: number, steps?: number}} [settings] of its training
 * @property {{test_exact_match: number, test_token_accuracy: number, test_pairs: number}}
 *   [stored] how good these weights are on the held-out test
 * @property {{parameters: number}} [result] of its training
 * @property {string[]} [repeat] the commands that make it again
 */

/** A model that cannot be had. The message is a sentence for the reader. */
export class LoadError extends Error {
  name = "LoadError";
}

/** Tensors by name, each float32 whatever it was stored as. */
export class Tensors {
  /** @param {Map<string, {shape: number[], data: Float32Array}>} tensors */
  constructor(tensors) {
    this.tensors = tensors;
  }

  /**
   * @param {string} name
   * @param {number} rows
   * @param {number} cols
   * @returns {Matrix}
   */
  matrix(name, rows, cols) {
    return new Matrix(rows, cols, this.#numbers(name, [rows, cols]));
  }

  /**
   * @param {string} name
   * @param {number} size
   * @returns {Float32Array}
   */
  vector(name, size) {
    return this.#numbers(name, [size]);
  }

  /**
   * @param {string} name
   * @param {number[]} shape
   */
  #numbers(name, shape) {
    const found = this.tensors.get(name);
    if (!found) throw new LoadError(`The weights of the model lack ${name}.`);
    if (String(found.shape) !== String(shape)) {
      const shapes = `is (${found.shape}), but its model has (${shape})`;
      throw new LoadError(`In the weights ${name} ${shapes}.`);
    }
    return found.data;
  }
}

/**
 * Fetch a checkpoint, and hold its weights to its manifest.
 * @param {URL | string} folder
 * @returns {Promise<{config: Record<string, unknown>, manifest: Manifest, tensors: Tensors}>}
 *   the config has the package's names
 * @throws {LoadError} a file is missing, truncated or changed
 */
export async function loadCheckpoint(folder) {
  const [text, weights] = await Promise.all([
    fetchFile(`${folder}/config.json`),
    fetchFile(`${folder}/model.safetensors`),
  ]);
  const { tformer: manifest, ...config } = readConfig(text);
  if (weights.byteLength < manifest.bytes) {
    const came = `${weights.byteLength} of ${manifest.bytes} bytes`;
    throw new LoadError(`The weights of the model came only in part: ${came}.`);
  }
  if (manifest.sha256 !== (await sha256(weights)) || weights.byteLength !== manifest.bytes) {
    throw new LoadError("The weights of the model are not those that its config describes.");
  }
  return { config, manifest, tensors: new Tensors(readSafetensors(weights)) };
}

/**
 * @param {string} url
 * @returns {Promise<ArrayBuffer>}
 */
async function fetchFile(url) {
  const file = url.replace(/.*\//, "");
  try {
    const response = await fetch(url);
    if (response.ok) return await response.arrayBuffer();
    const said = `the server says ${response.status}`;
    throw new LoadError(`The file ${file} of the model is missing (${said}).`);
  } catch (error) {
    if (error instanceof LoadError) throw error;
    throw new LoadError(`The file ${file} of the model could not be fetched.`, { cause: error });
  }
}

/**
 * @param {ArrayBuffer} text
 * @returns {{tformer: Manifest}}
 */
function readConfig(text) {
  let config;
  try {
    config = JSON.parse(new TextDecoder().decode(text));
  } catch (error) {
    throw new LoadError("The config of the model cannot be read.", { cause: error });
  }
  if (!config?.tformer) throw new LoadError("The config of the model is none of a checkpoint.");
  return config;
}

/**
 * @param {ArrayBuffer} bytes
 * @returns {Promise<string>} in hexadecimal
 */
async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Read a file of safetensors.
 * @param {ArrayBuffer} file
 * @returns {Map<string, {shape: number[], data: Float32Array}>}
 * @throws {LoadError} it is none
 */
export function readSafetensors(file) {
  const tensors = new Map();
  try {
    const length = Number(new DataView(file).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length)));
    const numbers = file.slice(8 + length);
    delete header.__metadata__;
    for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
      const data = toFloat32(numbers.slice(begin, end), dtype);
      const size = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
      if (data.length !== size) {
        throw new RangeError(`${name} has ${data.length} numbers, not ${size}`);
      }
      tensors.set(name, { shape, data });
    }
  } catch (error) {
    throw new LoadError("The weights of the model cannot be read.", { cause: error });
  }
  return tensors;
}

/**
 * @param {ArrayBuffer} bytes
 * @param {string} dtype as safetensors calls it
 * @returns {Float32Array}
 */
function toFloat32(bytes, dtype) {
  if (dtype === "F32") return new Float32Array(bytes);
  if (dtype === "F16") return Float32Array.from(new Uint16Array(bytes), float16);
  throw new RangeError(`numbers of ${dtype} are not read`);
}

/**
 * Read the 16 bits of a half: 1 sign, 5 exponent, 10 fraction (IEEE 754).
 * @param {number} bits
 * @returns {number}
 */
export function float16(bits) {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> 10) & 0b11111;
  const fraction = (bits & 0b1111111111) / 1024;
  if (exponent === 0) return sign * fraction * 2 ** -14; // subnormal
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction) * 2 ** (exponent - 15);
}
