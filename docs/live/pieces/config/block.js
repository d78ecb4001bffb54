// The drawing of a block: from top to bottom what a token goes through, and beside it the
// residual connections. Lines are short, so that it can be read on a phone.

import { svg } from "../../ui/dom.js";
import { grouped } from "../../ui/format.js";

/** @typedef {import("../../formulas/config.js").Reading} Reading */
/** @typedef {import("../../formulas/config.js").Layer} Layer */
/** @typedef {{title: string, lines?: string[], kind: string}} Box */

const LINE = 18, PAD = 7, GAP = 12, WIDTH = 300;

/**
 * What a box of attention says.
 * @param {Layer} layer
 * @param {string} positions of the model
 * @returns {Box}
 */
export function attentionBox({ attention, window }, positions) {
  const { kind, sizes } = attention;
  if (kind === "delta") {
    return { kind, title: sizes.N ? "Kimi delta attention" : "gated delta rule", lines: [`${sizes.H} heads, ${sizes.G} of keys`,
      `a state of ${sizes.Dk} × ${sizes.Dv} each`, ...(sizes.K > 1 ? [`convolution of ${sizes.K}`] : [])] };
  }
  if (kind === "latent") {
    return { kind, title: "latent attention", lines: [`${sizes.H} heads`,
      `latent of ${grouped(sizes.R)} + ${sizes.Dr}`, attention.rotates ? "rotary positions" : "no positions"] };
  }
  const { H, G, Dh, norms, gate, sinks, shared, valuesAreKeys } = sizes;
  const name = G === H ? "attention" : G === 1 ? "multi-query attention" : "grouped attention";
  const turned = attention.rotates ? "rotary positions"
    : ["alibi", "t5"].includes(positions) ? `${positions} bias` : "";
  const nowhere = positions === "rotary" && !attention.rotates ? "no positions" : "";
  return { kind: window === null ? kind : "window", title: name, lines: [
    `${H} heads of ${Dh}`, G === H ? "" : `${G} of keys and values`,
    shared ? "keys of an earlier layer" : valuesAreKeys ? "keys are values too" : "",
    window === null ? "" : `window of ${grouped(window)}`, turned || nowhere,
    norms ? (shared ? "norm of q" : "norms of q and k") : "", gate.length ? "gate" : "", sinks ? "sinks" : "",
  ].filter(Boolean) };
}

/** @param {Layer["network"]} network @returns {Box} */
export function networkBox({ kind, sizes }) {
  const name = sizes.gated ? "gated network" : "network";
  if (kind === "dense") {
    return { kind: "network", title: name, lines: [`${grouped(sizes.F)} inside`] };
  }
  return { kind: "experts", title: `${grouped(sizes.E)} experts`, lines: [`${sizes.k} for each token`,
    `${grouped(sizes.F)} inside`, ...(sizes.Fs ? [`and one of ${grouped(sizes.Fs)} for all`] : [])] };
}

/**
 * Draw the model around one layer.
 * @param {Reading} reading
 * @param {Layer} layer
 * @param {string} which of the layers: "28 ×"
 * @returns {SVGSVGElement}
 */
export function drawBlock({ around }, layer, which) {
  const { placement, norm, oneNorm, positions, tied, V, D, told, scaled } = around;
  const attention = attentionBox(layer, positions), network = networkBox(layer.network);
  const normed = { kind: "norm", title: norm };
  const frame = svg("rect", { class: "config-frame", rx: 8 });
  const root = svg("svg", { class: "config-block", "aria-hidden": "true" }, frame);
  const left = 46, width = WIDTH - left - 8, middle = left + width / 2;
  let y = 4;

  /** Put a box below; of `half` 0 or 1 in one of two columns, which `y` does not pass.
   * @param {Box} box @param {number | null} [half] @returns {number} where it ends */
  function put({ kind, title, lines = [] }, half = null, top = y) {
    const high = 2 * PAD + LINE * (1 + lines.length);
    const wide = half === null ? width : (width - 8) / 2;
    const x = half === null ? left : left + half * (wide + 8);
    root.append(svg("rect", { class: `config-box ${kind}`, x, y: top, width: wide, height: high, rx: 5 }),
      ...[title, ...lines].map((text, i) => svg("text", { class: i ? "soft" : "strong",
        x: x + wide / 2, y: top + PAD + LINE * i + 13, text })));
    return top + high;
  }
  /** A line down to what is next. @param {number} from @param {number} [x] */
  function down(from, x = middle) {
    root.append(svg("path", { class: "config-flow", d: `M${x} ${from}V${from + GAP}` }));
  }
  /** Boxes one below the other. @param {Box[]} boxes */
  function chain(boxes) {
    for (const box of boxes) {
      const end = put(box);
      down(end);
      y = end + GAP;
    }
  }
  /** Close a residual connection that began at `from`. @param {number} from */
  function add(from) {
    const at = y + 8;
    root.append(
      svg("path", { class: "config-residual", d: `M${middle} ${from}H${left - 16}V${at}H${middle - 8}` }),
      svg("circle", { class: "config-plus", cx: middle, cy: at, r: 8 }),
      svg("path", { class: "config-flow", d: `M${middle - 4} ${at}h8M${middle} ${at - 4}v8` }));
    down(at + 8);
    y = at + 8 + GAP;
  }

  const named = positions === "learned" || positions === "sinusoidal" ? [`+ ${positions} positions`] : [];
  chain([{ kind: "whole", title: "embedding", lines: [`${grouped(V)} × ${grouped(D)}`, ...named, ...told ? [`and ${grouped(told)} numbers for each layer`] : []] }]);
  const top = y + 10; // below the number of layers
  down(y);
  down(y + 10);
  y = top + GAP;
  const begin = y - 4;
  if (placement === "parallel") {
    if (oneNorm) chain([normed]);
    const columns = [[attention], [network]].map((boxes) => (oneNorm ? boxes : [normed, ...boxes]));
    const centre = (/** @type {number} */ half) => left + (half + 0.5) * ((width - 8) / 2) + 8 * half;
    y += 2;
    root.append(svg("path", { class: "config-flow",
      d: `M${centre(0)} ${y}V${y - 6}H${centre(1)}V${y}` }));
    const ends = columns.map((boxes, half) => {
      const x = centre(half);
      let at = y;
      boxes.forEach((box, i) => {
        if (i) down(at - GAP, x);
        at = put(box, half, at) + GAP;
      });
      return at - GAP;
    });
    const low = Math.max(...ends);
    ends.forEach((end, half) => {
      const d = `M${centre(half)} ${end}V${low + 6}H${middle}V${low + GAP}`;
      root.append(svg("path", { class: "config-flow", d }));
    });
    y = low + GAP;
    add(begin);
  } else {
    let from = begin;
    for (const part of [attention, network]) {
      const before = placement === "pre" || placement === "sandwich" ? [normed] : [];
      const after = placement === "output" || placement === "sandwich" ? [normed] : [];
      chain([...before, part, ...after]);
      add(from);
      if (placement === "post") chain([normed]);
      from = y - 6;
    }
    if (told) {
      chain([{ kind: "told", title: "the token again", lines: [`${grouped(told)} numbers, as far as let in`] },
        normed]);
      add(from);
    }
    if (scaled) chain([{ kind: "scale", title: "times a fixed number" }]);
  }
  const bottom = y - 4;
  for (const [name, value] of Object.entries({ x: 4, y: top + 2, width: WIDTH - 8, height: bottom - top })) {
    frame.setAttribute(name, String(value));
  }
  root.append(svg("text", { class: "config-times strong", x: 6, y: top - 4, text: which }));
  y = bottom + 2;
  down(y);
  y += GAP;
  if (placement !== "post") chain([normed]);
  const end = put({ kind: "whole", title: tied ? "logits, by the embedding" : "output",
    lines: [`${grouped(D)} × ${grouped(V)}`] });
  root.setAttribute("viewBox", `0 0 ${WIDTH} ${end + 4}`);
  root.setAttribute("width", String(WIDTH));
  root.setAttribute("height", String(end + 4));
  return root;
}
