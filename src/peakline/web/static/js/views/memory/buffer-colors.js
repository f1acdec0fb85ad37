/** Colors of single buffers, for where no op tells them apart: as PyTorch's memory_viz has them. */

import { CATEGORIES } from "../../core/colors.js";

/** What stands for an op where none is recorded. */
const NONE = new Set(["", "(before profile)"]);

/**
 * Whether colors by op would say nothing: no buffer has an op, or all have the same.
 * @param {string[]} ops
 */
export function isOneGroup(ops) {
  return ops.length <= 1 || ops.every((op) => NONE.has(op));
}

/**
 * Names of the colors of buffers: each has the one that follows from its record, whatever is in
 * view, or the next one that no neighbour has.
 * @param {(number | null)[]} records
 * @param {[number, number][]} neighbours places in `records` of buffers that touch each other
 * @returns {string[]}
 */
export function bufferColors(records, neighbours) {
  /** Of each buffer the neighbours before it. @type {number[][]} */
  const before = records.map(() => []);
  for (const [one, other] of neighbours) before[Math.max(one, other)]?.push(Math.min(one, other));
  const many = CATEGORIES.length, places = records.map(() => 0);
  records.forEach((record, buffer) => {
    const taken = new Set((before[buffer] ?? []).map((one) => places[one]));
    // Five has no divisor in common with twelve, so that records one after the other differ much.
    let place = ((record ?? buffer) * 5) % many;
    for (let tries = 0; tries < many && taken.has(place); tries++) place = (place + 1) % many;
    places[buffer] = place;
  });
  return places.map((place) => CATEGORIES[place] ?? "");
}

/**
 * Which buffers of a stack lie on each other at some pixel.
 * @param {{first: number[], last: number[]}} buffers in order of allocation, from the bottom
 * @param {number} pixels
 */
export function neighboursOf({ first, last }, pixels) {
  /** @type {[number, number][]} */
  const result = [];
  /** What was below each buffer at the pixel before. @type {Map<number, number>} */
  const under = new Map();
  /** @type {number[]} */
  let live = [];
  let next = 0;
  for (let pixel = 0; pixel < pixels; pixel++) {
    live = live.filter((one) => (last[one] ?? 0) > pixel);
    while (next < first.length && (first[next] ?? 0) <= pixel) live.push(next++);
    for (let at = 1; at < live.length; at++) {
      const one = live[at] ?? 0, below = live[at - 1] ?? 0;
      if (under.get(one) === below) continue;
      under.set(one, below);
      result.push([below, one]);
    }
  }
  return result;
}
