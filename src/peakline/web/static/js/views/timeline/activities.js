/** What goes on in events: names, and the colors that the parts of a step have too. */

import { partOf } from "../../core/parts.js";
import { palette } from "../../core/theme.js";

/**
 * `pale` is how much of the ground is mixed into the color: activities that share one differ by it.
 * @typedef {{name: string, text: string, color: string, pale: number}} Activity
 */

/** Without a text of its own it is called as the part. @type {Record<string, {text?: string, part: string, pale?: number}>} */
const STYLES = {
  nothing: { text: "markers", part: "unknown", pale: 0.5 },
  compute: { part: "compute" },
  communication: { part: "communication" },
  device_to_device: { part: "device_to_device", pale: 0.5 },
  device_to_host: { part: "device_to_host", pale: 0.28 },
  host_to_device: { part: "host_to_device" },
  input_wait: { part: "input_wait" },
  input_work: { text: "input pipeline", part: "input_wait", pale: 0.42 },
  compile: { part: "compile" },
  launch: { part: "launch" },
  wait: { text: "waiting", part: "idle" },
  host_op: { part: "host_compute" },
  host: { text: "other host work", part: "host_compute", pale: 0.5 },
};

/**
 * The look of an activity, by its word of the table `events`.
 * @param {string} name
 * @returns {Activity}
 */
export function activityOf(name) {
  const look = STYLES[name] ?? { text: name.replace(/_/g, " "), part: "unknown" };
  const { text, color } = partOf(look.part);
  return { name, text: look.text ?? text, color, pale: look.pale ?? 0 };
}

/**
 * Its color in today's theme, `#rrggbb`.
 * @param {Activity} activity
 */
export function activityColor({ color, pale }) {
  const colors = palette();
  return mixed(colors[color] ?? "#808080", colors["panel"] ?? "#ffffff", pale);
}

/**
 * @param {string} one
 * @param {string} other
 * @param {number} share of the other
 */
function mixed(one, other, share) {
  const part = (/** @type {number} */ at) => {
    const [from = 0, to = 0] = [one, other].map((color) => Number.parseInt(color.slice(at, at + 2), 16));
    return Math.round(from * (1 - share) + to * share).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}
