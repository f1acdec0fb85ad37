/** Round values for an axis of plain numbers. */

import { byteMarks } from "./axis.js";

const STEPS = [1, 2, 2.5, 5, 10];

/**
 * About `many` round values from `low` to `high`, both within; of bytes with binary units.
 * @param {number} low
 * @param {number} high
 * @param {number} many
 * @param {boolean} [isBytes]
 * @returns {number[]}
 */
export function ticks(low, high, many, isBytes = false) {
  if (isBytes && low >= 0) return byteMarks(high, many).filter((value) => value >= low);
  const rough = Math.max((high - low) / Math.max(many, 1), Number.MIN_VALUE);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (STEPS.find((one) => one * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const result = [];
  // Counted, not added up: a small step is lost in the last digit of a large number.
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high * (1 + 1e-12); place++) {
    result.push(place * step || 0);
    if (result.length > 100) break;
  }
  return result;
}
