// Writing at the reader's pace: one token back, one on, play, and how fast.

import { h, set, svg, uniqueId } from "../ui/dom.js";

/** Tokens a second, by name. */
export const SPEEDS = { slow: 1, normal: 3, fast: 8 };

const ICONS = {
  start: "M6 5h2v14H6zm12 0v14L9 12z",
  back: "M16 5v14L6 12z",
  play: "M7 4v16l13-8z",
  pause: "M6 5h4v14H6zm8 0h4v14h-4z",
  on: "M8 5v14l10-7z",
};

/**
 * Make the buttons.
 * @param {{count: () => number, total: () => number, go: (count: number) => void}} given
 *   how many tokens are written now and in all; `go` writes so many
 */
export function transport({ count, total, go }) {
  let timer = 0;
  /** @type {keyof typeof SPEEDS} */
  let speed = "normal";

  const start = icon("start", "To the start", () => jump(0));
  const back = icon("back", "One token back", () => jump(count() - 1));
  const play = icon("play", "Play", () => (timer ? stop() : run(count() >= total() ? 0 : count())));
  const on = icon("on", "One token on", () => jump(count() + 1));
  const said = h("span", { class: "transport-count" });
  const id = uniqueId("speed");
  const choose = h("select", { id, class: "transport-speed" },
    ...Object.keys(SPEEDS).map((name) => h("option", { value: name, text: name })));
  choose.value = speed;
  choose.addEventListener("change", () => {
    speed = /** @type {keyof typeof SPEEDS} */ (choose.value);
    if (timer) run(count());
  });

  /** @param {number} to */
  function jump(to) {
    stop();
    go(Math.max(0, Math.min(total(), to)));
  }
  function stop() {
    window.clearInterval(timer);
    timer = 0;
    dress();
  }
  /** @param {number} from */
  function run(from) {
    window.clearInterval(timer);
    go(from);
    timer = window.setInterval(() => {
      if (count() >= total()) return stop();
      go(count() + 1);
    }, 1000 / SPEEDS[speed]);
    dress();
  }
  function dress() {
    const name = timer ? "pause" : "play";
    set(play, { "aria-label": timer ? "Pause" : "Play", title: timer ? "Pause" : "Play" });
    play.firstElementChild?.firstElementChild?.setAttribute("d", ICONS[name]);
  }

  return {
    element: h("div", { class: "transport", role: "group", "aria-label": "Writing" },
      start, back, play, on, said,
      h("label", { for: id, class: "transport-label", text: "speed" }), choose),
    run,
    stop,
    get playing() {
      return timer !== 0;
    },
    update() {
      const [now, all] = [count(), total()];
      set(start, { "aria-disabled": now === 0 ? "true" : "false" });
      set(back, { "aria-disabled": now === 0 ? "true" : "false" });
      set(on, { "aria-disabled": now === all ? "true" : "false" });
      if (timer && now === all) stop();
      said.textContent = `${now} of ${all} tokens`;
    },
  };
}

/**
 * @param {keyof typeof ICONS} name
 * @param {string} label
 * @param {() => void} on
 */
function icon(name, label, on) {
  return h("button", {
    type: "button", class: "transport-button", "aria-label": label, title: label, onclick: on,
  }, svg("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" },
    svg("path", { d: ICONS[name] })));
}
