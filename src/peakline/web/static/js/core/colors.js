/** The colors of the categories of a picture: twelve, and grey for the rest. */

import { palette } from "./theme.js";

/** Names of colors of the stylesheet, in the order in which they are given out. */
export const CATEGORIES = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13].map((n) => `series-${n}`);
/** What is in none of the twelve, and what is attributed to nothing. */
export const REST = "series-8";

/**
 * The color of the category at a place, grey from the thirteenth on; `#rrggbb` in today's theme.
 * @param {number} place from 0
 */
export function categoryColor(place) {
  return palette()[CATEGORIES[place] ?? REST] ?? "";
}

/**
 * Black or white, whichever is read more easily on a color (by the relative luminance of WCAG 2).
 * @param {string} color `#rrggbb`
 */
export function inkOn(color) {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  // Both are as good where the luminance is the square root of 1.05 times 0.05, less 0.05.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** @type {Map<string, Uint32Array>} the colors of numbers, by theme */
const ramps = new Map();

/**
 * The colors of numbers from little to much, 256 places as pixels of a picture: from the ground to the
 * accent; diverging ones from a cold color over the ground to a warm one.
 * @param {boolean} isDiverging
 */
export function ramp(isDiverging) {
  const colors = palette();
  const ends = isDiverging ? ["series-1", "ground", "bad"] : ["ground", "series-5", "bad"];
  const stops = ends.map((name) => channels(colors[name] ?? ""));
  const key = JSON.stringify(stops);
  let result = ramps.get(key);
  if (!result) {
    result = rampOf(stops);
    ramps.set(key, result);
  }
  return result;
}

/**
 * 256 colors between three or more, as pixels: alpha, blue, green, red.
 * @param {number[][]} stops
 */
export function rampOf(stops) {
  const result = new Uint32Array(256);
  for (let place = 0; place < 256; place++) {
    const at = (place / 255) * (stops.length - 1);
    const first = Math.min(Math.floor(at), stops.length - 2), share = at - first;
    const [red = 0, green = 0, blue = 0] = [0, 1, 2].map((part) =>
      Math.round((stops[first]?.[part] ?? 0) * (1 - share) + (stops[first + 1]?.[part] ?? 0) * share));
    result[place] = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
  return result;
}

/** @param {string} color `#rrggbb` */
function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) || 0);
}
