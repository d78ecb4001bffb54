// A verdict of the judge in plain words.

import { h } from "../ui/dom.js";

const ROOT = new URL("../../", import.meta.url);

/**
 * @typedef {{id: string, sentence: string, chapter: string, page: string}} Mistake
 *   `page` is the folder of the atlas that has it, if any
 * @typedef {{verdict: "right" | "wrong" | "not run", reason?: string,
 *   differs?: {kind: string, case: string, message: string},
 *   mistakes?: Mistake[], together?: boolean, partly?: boolean, numbers?: [string, string][], rule?: string,
 *   raises?: string}} Verdict
 */

/**
 * @param {Verdict} verdict
 * @param {string} name what the reader has written
 * @param {boolean} folded whether the mistake is to be found: its name is in a fold
 * @returns {HTMLElement[]}
 */
export function verdictOf(verdict, name, folded) {
  if (verdict.verdict === "right") {
    const shell = h("code", { text: `tformer check ${name}` });
    return [
      h("p", {}, h("b", { text: "✓ Right." }),
        " It gives the right numbers in every case."),
      h("p", {}, "Here it ran with NumPy. In a shell, ", shell,
        " looks at gradients too, if it is written with torch."),
    ];
  }
  if (verdict.verdict === "not run" || !verdict.differs) {
    return [h("p", {}, h("b", { text: "Not judged. " }), verdict.reason ?? "")];
  }
  const { case: where, message } = verdict.differs;
  const rule = verdict.rule && h("p", {}, `What must hold: ${verdict.rule}.`);
  const mistakes = verdict.mistakes ?? [];
  const several = mistakes.length > 1 && h("p", {}, verdict.together
    ? "These give your numbers together:" : "One of these gives your numbers:");
  const sentences = mistakes.map((mistake) => told(mistake, mistake.sentence));
  const named = !folded || !mistakes.length ? [several, ...sentences]
    : [h("details", { class: "live-numbers" },
        h("summary", { text: "Which mistake gives these numbers" }),
        several, ...sentences)];
  const partly = verdict.partly && h("p", {},
    "That explains a part of what differs; what else was done is not known.");
  const unknown = mistakes.length === 0 && h("p", {},
    "Which mistake it is, the numbers do not say. Look at the smallest case first.");
  const raises = verdict.raises && h("p", { text: verdict.raises });
  const parts = [
    h("p", {}, h("b", { text: "✗ Not right yet. " }),
      `In the case “${where}” ${message}.`),
    raises, rule, ...named, partly, unknown, numbers(verdict.numbers ?? []),
  ];
  return parts.filter((part) => part instanceof HTMLElement);
}

/**
 * Say that a planted mistake is mended, and which it was.
 * @param {Mistake} mistake
 * @returns {HTMLElement[]}
 */
export function mendedOf(mistake) {
  return [
    h("p", {}, h("b", { text: "✓ Mended." }),
      " It gives the right numbers in every case. The planted mistake was:"),
    told(mistake, `“${mistake.sentence}”`),
  ];
}

/** @param {Mistake} mistake @param {string} sentence */
function told({ id, chapter, page }, sentence) {
  return h("p", { class: "python-mistake" }, `${sentence} `, section(chapter),
    page && ". ", page && link(`mistakes/${page}/${id}/`, "See the mistake"));
}

/** @param {string} address a chapter and its section: "rotary#the-formula" */
function section(address) {
  const [chapter, slug] = address.split("#");
  const told = `${chapter.replaceAll("-", " ")}: ${(slug ?? "").replaceAll("-", " ")}`;
  return link(`chapters/${chapter}/#${slug ?? ""}`, `Read ${told}`);
}

/**
 * @param {string} path below the site's root
 * @param {string} text
 */
function link(path, text) {
  return h("a", { href: new URL(path, ROOT).href, text });
}

/** @param {[string, string][]} pairs names and numbers */
function numbers(pairs) {
  const list = pairs.flatMap(([name, text]) => {
    const told = { yours: "what yours gives", right: "what is right" }[name] ?? name;
    return [h("dt", { text: told }), h("dd", {}, h("pre", { text, tabindex: 0 }))];
  });
  return pairs.length > 0 && h("details", { class: "live-numbers" },
    h("summary", { text: "The numbers of this case" }), h("dl", {}, ...list));
}
