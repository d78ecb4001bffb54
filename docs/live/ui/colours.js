// Colours of the book's figures, for light and for dark pages. The eight named ones are
// variables in live.css (--live-blue …); here are the ramps of its heat maps, as in
// docs/engine/run/style.py: 0 is the paper, blue is positive, red negative.

export const RAMPS = {
  blues: {
    light: ["#fffefb", "#d3e4f3", "#8fbbe0", "#4189c7", "#1b5796", "#0b2c55"],
    dark: ["#16181b", "#21415f", "#2c6aa6", "#4692d3", "#93c8f3", "#e9f5ff"],
  },
  reds: {
    light: ["#fffefb", "#f7d9ca", "#eaa283", "#d0603f", "#98311f", "#541210"],
    dark: ["#16181b", "#532a20", "#934931", "#d2674a", "#f3a98c", "#ffe9df"],
  },
};

/**
 * Return a colour of a ramp.
 * @param {string[]} ramp
 * @param {number} part from 0 to 1
 */
export function between(ramp, part) {
  const place = Math.min(1, Math.max(0, part)) * (ramp.length - 1);
  const below = Math.min(Math.floor(place), ramp.length - 2);
  const [from, to] = [channels(ramp[below]), channels(ramp[below + 1])];
  const mixed = from.map((x, i) => Math.round(x + (to[i] - x) * (place - below)));
  return `rgb(${mixed.join(" ")})`;
}

/** @param {string} hex */
function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/**
 * Colour an element of the class `live-cell` by a value; live.css picks the scheme.
 * @param {HTMLElement | SVGElement} element
 * @param {number} value
 * @param {number} [most] the value, or minus the value, of the strongest colour
 */
export function paint(element, value, most = 1) {
  const part = Number.isFinite(value) ? value / (most || 1) : 0;
  const ramp = part < 0 ? RAMPS.reds : RAMPS.blues;
  element.style.setProperty("--cell-light", between(ramp.light, Math.abs(part)));
  element.style.setProperty("--cell-dark", between(ramp.dark, Math.abs(part)));
  element.classList.toggle("strong", Math.abs(part) > 0.5);
}
