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
