// Run in a page: asks the engine about cases, and returns what it computed, as text.
// One argument: {name, cases: [{source, target, changes, whole}]}.
async ({ name, cases }) => {
  const { Transformer } = await import("/live/engine/transformer.js");
  const { greedy } = await import("/live/engine/generate.js");
  const { AttentionRecord } = await import("/live/engine/recording.js");
  window.models ??= {};
  const model = (window.models[name] ??= await Transformer.load(`/live/models/${name}`));

  /** Float32Array to base64, which is shorter than JSON, and exact. */
  const packed = (data) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    let text = "";
    for (let i = 0; i < bytes.length; i += 4096) {
      text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    }
    return btoa(text);
  };
  const one = ({ rows, cols, data }) => ({ shape: [rows, cols], data: packed(data) });
  const several = (list) => ({
    shape: [list.length, list[0].rows, list[0].cols],
    data: packed(Float32Array.from(list.flatMap((each) => [...each.data]))),
  });

  return cases.map(({ source, target, changes: asked, whole }) => {
    const changes = { ...asked, off: new Set(asked.off) };
    const { memory, record: encoding } = model.encode(source, changes);
    const { record: decoding } = model.decode(target, memory, changes);
    const numbers = {};
    for (const [module, kept] of [...encoding, ...decoding]) {
      if (!(kept instanceof AttentionRecord)) {
        if (whole || module === "logits") numbers[module] = one(kept);
        continue;
      }
      numbers[`${module}:weights`] = several(kept.weights);
      if (!whole) continue;
      for (const part of ["query", "key", "value", "scores", "scaled", "masked", "heads"]) {
        numbers[`${module}:${part}`] = several(kept[part]);
      }
      numbers[`${module}:joined`] = one(kept.joined);
      numbers[module] = one(kept.output);
    }
    return { numbers, ids: greedy(model, source, { changes }).ids };
  });
};
