// Run by node: asks the engine of the page the cases of the specs, given on stdin as
// {spec: cases}, and writes {spec: {case: arrays}} for those that it can take.
import { readFileSync } from "node:fs";

const ENGINE = new URL("../../docs/live/engine/", import.meta.url);
const load = (name) => import(new URL(`${name}.js`, ENGINE));
const { scaledDotProductAttention } = await load("attention");
const { causalMask, combineMasks } = await load("masks");
const { splitHeads, mergeHeads, MultiHeadAttention } = await load("heads");
const { Matrix } = await load("linear");
const { layerNorm } = await load("norm");
const { sinusoidalPositions } = await load("positions");
const { topKFilter, topPFilter } = await load("sampling");
const { Run } = await load("recording");

const size = (shape) => shape.reduce((a, b) => a * b, 1);
const floats = (x) => Float32Array.from(x.data, Number);
const matrix = (x, i = 0) => {
  const [rows, cols] = x.shape.slice(-2);
  return new Matrix(rows, cols, floats(x).subarray(i * rows * cols, (i + 1) * rows * cols));
};
const array = (shape, parts) => ({ shape, data: parts.flatMap((x) => [...(x.data ?? x)].map(String)) });
const rows = (x) => ({ shape: [x.length, x[0].length], data: x.flat() });
/** The rows (T, S) of a mask that broadcasts to (B, H, T, S), for one batch and head. */
const maskOf = (x, b, h, T, S) => {
  if (!x) return null;
  const shape = [1, 1, 1, 1, ...x.shape].slice(-4);
  const at = [b, h, 0, 0].map((i, axis) => (shape[axis] === 1 ? 0 : i));
  return Array.from({ length: T }, (_, t) =>
    Array.from({ length: S }, (_, s) => {
      const [i, j, k, l] = [at[0], at[1], shape[2] === 1 ? 0 : t, shape[3] === 1 ? 0 : s];
      return x.data[((i * shape[1] + j) * shape[2] + k) * shape[3] + l];
    }),
  );
};

const attend = (query, key, value, mask, { is_causal, ...scale }) => {
  const [B, H, T] = query.shape;
  const [G, S] = key.shape.slice(1);
  const outputs = [];
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      const at = b * G + Math.floor(h / (H / G));
      const seen = combineMasks(maskOf(mask, b, h, T, S), is_causal ? causalMask(T, S) : null);
      const [k, v] = [matrix(key, at), matrix(value, at)];
      outputs.push(scaledDotProductAttention(matrix(query, b * H + h), k, v, seen, scale).output);
    }
  }
  return array([B, H, T, value.shape[3]], outputs);
};

const multiHead = (x, wQ, wK, wV, wO, numHeads, mask, { memory, is_causal, num_kv_heads }) => {
  const weights = { "m.q_proj": wQ, "m.k_proj": wK, "m.v_proj": wV, "m.out_proj": wO };
  const tensors = { matrix: (name) => matrix(weights[name.replace(".weight", "")]) };
  const [B, T, dModel] = x.shape;
  const config = { dModel, numHeads, numKvHeads: num_kv_heads, bias: false };
  const module = new MultiHeadAttention(tensors, "m", config);
  const outputs = Array.from({ length: B }, (_, b) => {
    const source = matrix(memory ?? x, b);
    const attnMask = maskOf(mask, b, 0, T, source.rows);
    const options = { attnMask, isCausal: is_causal };
    return module.forward(matrix(x, b), memory ? source : matrix(x, b), new Run({}, { causal: true }), options);
  });
  return array([B, T, dModel], outputs);
};

const each = (x, f) => Array.from({ length: size(x.shape) / x.shape.at(-1) }, (_, i) =>
  f(matrix({ ...x, shape: [1, x.shape.at(-1)] }, i)));
const ENGINES = {
  attention: (q, k, v, mask, options) => attend(q, k, v, mask, options),
  grouped_attention: (q, k, v, mask, options) => attend(q, k, v, mask, options),
  causal_mask: (T, S) => rows(causalMask(T, S)),
  multi_head: multiHead,
  split_heads: (x, H) => array([x.shape[0], H, x.shape[1], x.shape[2] / H],
    Array.from({ length: x.shape[0] }, (_, b) => splitHeads(matrix(x, b), H)).flat()),
  merge_heads: (x) => array([x.shape[0], x.shape[2], x.shape[1] * x.shape[3]],
    Array.from({ length: x.shape[0] }, (_, b) => mergeHeads(
      Array.from({ length: x.shape[1] }, (_, h) => matrix(x, b * x.shape[1] + h))))),
  layer_norm: (x, weight, bias, eps) => array(x.shape,
    each(x, (row) => layerNorm(row, floats(weight), bias && floats(bias), eps))),
  sinusoids: (length, dModel) => array([length, dModel], [sinusoidalPositions(length, dModel)]),
  top_k: (x, k) => array(x.shape, each(x, (row) => topKFilter(row.data, k))),
  top_p: (x, p) => array(x.shape, each(x, (row) => topPFilter(row.data, p))),
};
const POSITIONAL = { attention: 4, grouped_attention: 4, multi_head: 7 };

const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = {};
for (const [spec, cases] of Object.entries(asked)) {
  answers[spec] = {};
  for (const { name, args, options } of cases) {
    while (args.length < (POSITIONAL[spec] ?? 0)) args.push(null);
    answers[spec][name] = ENGINES[spec](...args, options);
  }
}
console.log(JSON.stringify(answers));
