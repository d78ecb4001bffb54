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

/** How a text came; "play" asks for it to be played, though nothing else may move.
 * @typedef {"typed" | "example" | "play"} How
 */

/**
 * @typedef {Object} Room
 * @property {Node[]} elements
 * @property {(text: string, how: How) => void} read write a text, from its start
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
      const done = count >= all;
      // Once all was played, all its lines are seen together.
      void change({ step: done ? null : count, token: `target:${Math.max(0, count - 1)}` },
        done && play.playing);
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
    async read(typed, how) {
      play.stop();
      const plays = how === "play" || !still;
      if (typed !== state.text || !plays) {
        await change({ text: typed, step: plays ? 0 : null, token: "target:99" }, true);
      }
      if (plays) play.run(0);
    },
  };
}
