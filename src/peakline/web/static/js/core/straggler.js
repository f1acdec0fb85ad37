/** Who keeps the others waiting, in words. */

import { count, percent, time } from "./format.js";

/**
 * @typedef {object} Straggler
 * @property {string} name
 * @property {"communication" | "finish"} evidence
 * @property {number} steps
 * @property {number} behind_ps
 * @property {number} waited_ps
 * @property {number} share
 * @property {number} often
 */

/**
 * @param {Straggler | null} straggler
 * @param {number} members how many were compared
 * @param {string} [one] what they are
 */
export function stragglerText(straggler, members, one = "host") {
  if (!straggler) return members > 1 ? `No ${one} keeps the others waiting.` : "";
  const how = straggler.evidence === "communication"
    ? "it is in collectives for the shortest time" : "its computation ends last";
  return `The other ${one}s wait for ${straggler.name}: ${percent(straggler.share)} of the step `
    + `time, ${time(straggler.behind_ps)} in the median step; ${how} in `
    + `${percent(straggler.often)} of ${count(straggler.steps)} common steps.`;
}
