// What can stand around a part: the names, lines of code and numbers of the chapter.

/** @typedef {import("../../formulas/depth.js").Norm} Norm */
/**
 * @typedef {object} Kind
 * @property {boolean} residual
 * @property {Norm} norm
 * @property {string} name as the chapter's table says it
 * @property {string} said at the beginning of a sentence
 * @property {string} code what a layer computes
 * @property {string} ink the colour, a variable of live.css
 * @property {string} dash the pattern of the line
 */

/** In the order of the chapter's table. @type {Kind[]} */
export const KINDS = [
  {
    residual: false, norm: "none", name: "nothing", said: "Nothing around the parts",
    code: "part(x)", ink: "blue", dash: "",
  },
  {
    residual: false, norm: "after", name: "norm only", said: "Only a norm after each part",
    code: "norm(part(x))", ink: "orange", dash: "8 4",
  },
  {
    residual: false, norm: "before", name: "norm before only",
    said: "Only a norm before each part", code: "part(norm(x))", ink: "brown", dash: "2 3 8 3",
  },
  {
    residual: true, norm: "none", name: "residual only", said: "Only residual connections",
    code: "x + part(x)", ink: "green", dash: "2 4",
  },
  {
    residual: true, norm: "after", name: "post-norm", said: "Post-norm",
    code: "norm(x + part(x))", ink: "red", dash: "8 3 2 3",
  },
  {
    residual: true, norm: "before", name: "pre-norm", said: "Pre-norm",
    code: "x + part(norm(x))", ink: "purple", dash: "",
  },
];

/**
 * @param {boolean} residual
 * @param {Norm} norm
 */
export function kindOf(residual, norm) {
  return /** @type {Kind} */ (
    KINDS.find((kind) => kind.residual === residual && kind.norm === norm));
}
