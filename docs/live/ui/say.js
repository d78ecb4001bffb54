// A live region: it tells a screen reader what changed, once the reader pauses.

import { h } from "./dom.js";

const PAUSE = 500; // ms: while a slider moves, only where it stops is told

/** @returns {{element: HTMLElement, say: (text: string) => void}} */
export function speaker() {
  const element = h("p", { class: "live-said", role: "status", "aria-live": "polite" });
  let waiting = 0;
  return {
    element,
    say(text) {
      window.clearTimeout(waiting);
      waiting = window.setTimeout(() => (element.textContent = text), PAUSE);
    },
  };
}
