// The card: what came of a bet as a picture to keep or to send, drawn in the page.

import { drawMap, spoken } from "../../explorer/maps.js";
import { h, set } from "../../ui/dom.js";

/** @typedef {import("../../explorer/runs.js").View} View */

/**
 * @typedef {Object} Shown
 * @property {View} whole of the whole model
 * @property {View} shown of the model without the head
 * @property {string} head
 * @property {boolean} broken whether the text is another without it
 */

const [WIDTH, HEIGHT] = [1200, 630]; // as cards of links are
const EDGE = 70;
const NAME = "break-the-head.png";
const SHARE = "Share the card";
const AGAIN = 3000; // ms, until the button has its name back

/**
 * Make the card, and the buttons that save and share it.
 * @param {(text: string) => void} say
 * @param {() => string} link the address that shows the same bet
 */
export function card(say, link) {
  let heading = "";
  const canvas = h("canvas", { class: "bet-card", role: "img", width: WIDTH, height: HEIGHT });
  const save = h("button", {
    type: "button", class: "live-button", text: "Save the card",
    onclick: async () => {
      const address = URL.createObjectURL(await picture());
      h("a", { href: address, download: NAME }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      say("The card is saved.");
    },
  });
  const send = h("button", {
    type: "button", class: "live-button", text: SHARE, hidden: !canShare(),
    onclick: async () => {
      const files = [new File([await picture()], NAME, { type: "image/png" })];
      const text = canvas.getAttribute("aria-label") ?? "";
      try {
        await navigator.share({ files, title: heading, text, url: link() });
      } catch (error) {
        // Whoever closes the dialogue without sending has done nothing wrong.
        if (error instanceof DOMException && error.name === "AbortError") return;
        send.textContent = "Save it, and send the file";
        say(`It could not be shared. ${send.textContent}.`);
        window.setTimeout(() => (send.textContent = SHARE), AGAIN);
      }
    },
  });

  /** @returns {Promise<Blob>} */
  function picture() {
    return new Promise((done, fail) =>
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"));
  }

  return {
    element: canvas,
    buttons: [save, send],
    /** @param {Shown} shown */
    update(shown) {
      draw(canvas, shown);
      heading = title(shown);
      const { text } = shown.whole.reading;
      set(canvas, { "aria-label": `${heading} It reads ${text} and writes ` +
        `${shown.whole.shown.text}. Without ${spoken(shown.head)} it writes ${shown.shown.shown.text}.` });
    },
  };
}

/** Whether this browser hands files to other programs. */
function canShare() {
  const file = new File([], NAME, { type: "image/png" });
  return Boolean(navigator.canShare?.({ files: [file] }));
}

/** @param {Shown} shown */
function title({ broken }) {
  return broken ? "I broke a Transformer with one switch." : "One head off, and nothing happened.";
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Shown} shown
 */
function draw(canvas, shown) {
  const { whole, head, broken } = shown;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(canvas);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const family = (/** @type {string} */ name) => colour(name) || "sans-serif";
  const ink = colour("--book-ink"), soft = colour("--book-ink-soft");
  context.fillStyle = colour("--book-paper");
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = colour("--live-orange");
  context.fillRect(0, 0, WIDTH, 14);

  const sans = family("--book-sans"), mono = family("--book-mono");
  /** @param {string} text @param {number} y @param {string} font @param {string} fill @param {number} [most] */
  const line = (text, y, font, fill, most = WIDTH - 2 * EDGE) => {
    context.font = font;
    context.fillStyle = fill;
    context.fillText(text, EDGE, y, most);
  };
  line(title(shown), 110, `650 52px ${sans}`, ink);
  const room = WIDTH - 3 * EDGE - 260; // beside the map
  line(whole.reading.text, 200, `500 40px ${sans}`, ink, room);
  line("as trained", 268, `500 28px ${sans}`, soft);
  line(whole.shown.text, 322, `600 50px ${mono}`, ink, room);
  line("without one head", 390, `500 28px ${sans}`, soft);
  line(shown.shown.shown.text || "nothing", 444, `700 50px ${mono}`, broken ? colour("--live-orange") : ink, room);
  line(`Off: ${spoken(head)}`, 512, `500 28px ${sans}`, ink);
  line(new URL("../../../", import.meta.url).href.replace(/^https?:\/\/|\/$/g, ""), 575, `500 26px ${sans}`, soft);

  const [attention, at] = head.split(":");
  const map = h("canvas");
  drawMap(map, whole.record?.attention(attention).weights[Number(at)] ?? null);
  context.imageSmoothingEnabled = false;
  const [x, y, size] = [WIDTH - EDGE - 260, 180, 260];
  context.drawImage(map, x, y, size, size);
  context.strokeStyle = soft;
  context.strokeRect(x, y, size, size);
}
