// A link to what is seen: the address holds all that the reader has set.

import { h } from "../ui/dom.js";

const AGAIN = 3000; // ms, until the button has its name back

/**
 * Make the button that copies the address.
 * @param {() => void} save writes the state into the address
 * @param {(text: string) => void} say
 */
export function copyLink(save, say) {
  const button = h("button", { type: "button", class: "live-button", text: "Copy link" });
  button.addEventListener("click", async () => {
    save();
    const copied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
    button.textContent = copied ? "Link copied" : "Copy it from the address bar";
    say(`${button.textContent}.`);
    window.setTimeout(() => (button.textContent = "Copy link"), AGAIN);
  });
  return button;
}
