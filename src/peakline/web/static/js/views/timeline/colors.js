/**
 * The colors of events by name, always the same one for a name, and the pixels of any colors.
 *
 * Those of names have one luminance (WCAG), between the light and the dark ground: 3 to 1 against
 * either, and more than 5 to 1 for the dark text on them.
 */

import { inkOn } from "../../core/colors.js";

const LUMINANCE = 0.285;
const HUES = [212, 24, 145, 278, 48, 188, 335, 98, 248, 8, 166, 300, 36, 122, 228, 352];
const SATURATIONS = [0.62, 0.38];
/** How much of the ground is in the color of what is merged, and of what no search found. */
const MERGED = 0.34;
const DIM = 0.8;

/** @typedef {[number, number, number]} Rgb */

/** @type {Rgb[]} */
const COLORS = SATURATIONS.flatMap((saturation) =>
  HUES.map((hue) => ofLuminance(hue, saturation)));

/**
 * Which of the colors a name has.
 * @param {string} name
 */
export function colorOf(name) {
  let hash = 0x811c9dc5;
  for (let place = 0; place < name.length; place++) {
    hash = Math.imul(hash ^ name.charCodeAt(place), 0x01000193);
  }
  return ((hash ^ (hash >>> 15)) >>> 0) % COLORS.length;
}

/** @param {number} color */
export function cssColor(color) {
  const [red, green, blue] = /** @type {Rgb} */ (COLORS[color]);
  return `rgb(${red}, ${green}, ${blue})`;
}

/**
 * The pixels of an ImageData of each color: of single events, of merged ones, and of both where they
 * are dimmed; and what a text on each is written in.
 * @typedef {{single: Uint32Array, merged: Uint32Array, dim: Uint32Array, dimMerged: Uint32Array, css: string[], ink: string[]}} Shades
 */

/**
 * @param {string} ground `#rrggbb`
 * @returns {Shades}
 */
export function nameShades(ground) {
  return shadesOf(COLORS.map((color) =>
    `#${color.map((part) => part.toString(16).padStart(2, "0")).join("")}`), ground);
}

/**
 * @param {string[]} colors `#rrggbb`
 * @param {string} ground
 * @returns {Shades}
 */
export function shadesOf(colors, ground) {
  const parsed = colors.map(parseColor), below = parseColor(ground);
  const made = (/** @type {number} */ share) =>
    Uint32Array.from(parsed, (color) => pixel(mix(color, below, share)));
  return { single: made(0), merged: made(MERGED), dim: made(DIM), dimMerged: made(0.88), css: colors,
    ink: colors.map(inkOn) };
}

/**
 * A color of the stylesheet, `#rrggbb`.
 * @param {string} text
 * @returns {Rgb}
 */
function parseColor(text) {
  const value = Number.parseInt(text.replace("#", ""), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** @param {Rgb} color */
function pixel([red, green, blue]) {
  // The bytes are red, green, blue, alpha; every machine that runs a browser is little-endian.
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * @param {Rgb} one
 * @param {Rgb} other
 * @param {number} share of the other
 * @returns {Rgb}
 */
function mix(one, other, share) {
  const part = (/** @type {0 | 1 | 2} */ place) =>
    Math.round(one[place] * (1 - share) + other[place] * share);
  return [part(0), part(1), part(2)];
}

/**
 * @param {number} hue
 * @param {number} saturation
 * @returns {Rgb}
 */
function ofLuminance(hue, saturation) {
  let low = 0, high = 1;
  for (let round = 0; round < 20; round++) {
    const middle = (low + high) / 2;
    if (luminance(rgb(hue, saturation, middle)) < LUMINANCE) low = middle;
    else high = middle;
  }
  return rgb(hue, saturation, low);
}

/**
 * @param {number} hue
 * @param {number} saturation
 * @param {number} lightness
 * @returns {Rgb}
 */
function rgb(hue, saturation, lightness) {
  const part = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    const most = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - most * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** @param {Rgb} color */
function luminance(color) {
  const [red, green, blue] = /** @type {Rgb} */ (color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
