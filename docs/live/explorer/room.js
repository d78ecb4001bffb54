// What stands below the field of the home, once the model is there: the picture, the
// buttons, the likeliest tokens.

import { loadStyle } from "../ui/piece.js";
import { probabilities } from "./probabilities.js";
import { Runs, crossHead, loadModel } from "./runs.js";
import { stage } from "./stage.js";
import { START, TRAINED, write } from "./state.js";
import { transport } from "./transport.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./state.js").State} State */

/**
 * @typedef {Object} Room
 * @property {Node[]} elements
 * @property {(text: string, how: "typed" | "example") => void} read write a text, from its start
 * @property {() => void} draw
 */

/**
 * Load the model, and make the room.
 * @param {{text: string, still: boolean, link: Element | null, say: (text: string) => void,
 *   onReading: (reading: import("./runs.js").Reading) => void}} given
 *   `link` leads to the explorer, and takes what is shown along
 * @returns {Promise<Room>}
 */
export async function openRoom({ text, still, link, say, onReading }) {
  await Promise.all([
    loadModel(TRAINED),
    loadStyle(new URL("../pieces/writing.css", import.meta.url)),
  ]);
  const runs = new Runs();
  /** @type {State} */
  let state = { ...START, off: [], text };
  let view = await runs.view(state);
  /** Whether all lines are shown alike: nothing is picked, and all is written. */
  let whole = true;
  let turn = 0;

  const picture = stage({
    onWritten: (t) => change({ token: `target:${t}` }, false),
  });
  const play = transport({
    count: () => view.count,
    total: () => view.shown.steps.length,
    go: (count) => {
      const all = view.shown.steps.length;
      void change({ step: count >= all ? null : count, token: `target:${Math.max(0, count - 1)}` }, false);
    },
  });
  const bars = probabilities({ most: 3 });

  /** @param {Partial<State>} patch @param {boolean} all */
  async function change(patch, all) {
    state = { ...state, ...patch };
    whole = all;
    const mine = (turn += 1);
    const next = await runs.view(state);
    if (mine !== turn) return;
    view = next;
    draw();
  }

  function draw() {
    const [name, at] = crossHead(state.head);
    const weights = view.record?.attention(name).weights[at];
    picture.update({
      source: view.source,
      written: view.shown.tokens.slice(0, view.count),
      chosen: view.shown.chosen,
      looks: (t) => weights?.row(t) ?? [],
      row: whole || !view.count ? null : view.row,
      marked: view.row,
    });
    play.update();
    bars.update(view);
    onReading(view.reading);
    link?.setAttribute("href", new URL("../", import.meta.url).href + write(state));
    if (view.count === view.shown.steps.length) say(`It writes ${view.shown.text}.`);
  }

  return {
    elements: [picture.element, play.element, bars.element],
    draw,
    async read(typed) {
      play.stop();
      if (typed === state.text && view.count) return play.run(0);
      await change({ text: typed, step: still ? null : 0, token: "target:99" }, true);
      if (!still) play.run(0);
    },
  };
}
