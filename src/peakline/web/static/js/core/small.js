/** Two small pictures: memory over time, and a bar for every step. */

import { Surface } from "./canvas.js";
import { h } from "./dom.js";
import { bytes, time, worded } from "./format.js";
import { palette } from "./theme.js";
import { hideTip, showTip } from "./tooltip.js";
import { WORDING } from "./wording.js";

const AIR_PX = 2;

/**
 * @typedef {object} Curve memory in use of one allocator: the least and the most of each pixel
 * @property {string} allocator
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number[]} low
 * @property {number[]} high
 */
/**
 * @typedef {object} Strip the steps in order, the longest of each bar
 * @property {string[]} name
 * @property {(string | null)[]} device
 * @property {number[]} wall_ps
 * @property {boolean[]} is_slow
 * @property {boolean[]} is_warm_up slow, and one of the first of its name
 * @property {number[]} steps of each bar
 */

/**
 * Memory over time; a click chooses the moment.
 * @param {Curve} curve
 * @param {(at: number) => void} choose
 */
export function memorySpark(curve, choose) {
  const { high, low, start_ps: start, end_ps: end } = curve;
  const top = Math.max(...high, 1);
  const peak = high.indexOf(Math.max(...high));
  return picture({
    label: `Memory of ${curve.allocator || "the allocator"} over time: the peak is ${bytes(top)}`,
    count: high.length,
    draw(context, width, height) {
      const colors = palette();
      const y = (/** @type {number} */ value) => height - AIR_PX - (value / top) * (height - 2 * AIR_PX);
      const wide = width / high.length;
      context.fillStyle = colors["series-1"] ?? "";
      high.forEach((most, place) => {
        const from = y(most);
        context.globalAlpha = 0.35;
        context.fillRect(place * wide, from, wide + 0.5, height - from);
        context.globalAlpha = 1;
        // The line: from the least to the most of the pixel.
        context.fillRect(place * wide, from, wide + 0.5, Math.max(y(low[place] ?? 0) - from, 1.5));
      });
      context.fillStyle = colors["bad"] ?? "";
      context.fillRect((peak + 0.5) * wide - 1, 0, 2, height);
    },
    tip: (place) => [bytes(high[place]), `at ${time(timeOf(place))}`],
    choose: (place) => choose(Math.round(timeOf(place))),
  });

  /** @param {number} place */
  function timeOf(place) {
    return start + ((place + 0.5) * (end - start)) / high.length;
  }
}

/**
 * A bar for every step, or for some steps each; a click chooses the step.
 * @param {Strip} strip
 * @param {(name: string, device: string | null) => void} choose
 */
export function stepStrip(strip, choose) {
  const { name, wall_ps: wall, is_slow: slow, is_warm_up: warm, steps, device } = strip;
  const top = Math.max(...wall, 1);
  const many = steps.reduce((sum, one) => sum + one, 0);
  return picture({
    label: `How long each of ${many} steps took: at most ${time(top)}`
      + (slow.some(Boolean) ? `, ${WORDING.steps.in_red}` : "")
      + (warm.some(Boolean) ? `, ${WORDING.steps.in_gray}` : ""),
    count: wall.length,
    draw(context, width, height) {
      const colors = palette(), wide = width / wall.length;
      const gap = wide >= 4 ? 1 : 0;
      wall.forEach((length, place) => {
        const high = Math.max(1, (length / top) * (height - AIR_PX));
        context.fillStyle = colors[slow[place] ? "bad" : warm[place] ? "quiet" : "series-3"] ?? "";
        context.fillRect(place * wide, height - high, Math.max(wide - gap, 1), high);
      });
    },
    tip: (place) => [name[place] ?? "", time(wall[place]),
      ...(warm[place] ? [`first step: ${WORDING.steps.warms_up}`] : []),
      ...((steps[place] ?? 1) > 1 ? [worded(WORDING.steps.longest_of, { steps: steps[place] ?? 0 })] : [])],
    choose: (place) => choose(name[place] ?? "", device[place] ?? null),
  });
}

/**
 * @param {object} options
 * @param {string} options.label
 * @param {number} options.count places from left to right
 * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} options.draw
 * @param {(place: number) => string[]} options.tip
 * @param {(place: number) => void} options.choose
 */
function picture({ label, count, draw, tip, choose }) {
  const canvas = h("canvas", { class: "small-picture", role: "img", "aria-label": label });
  const surface = new Surface(canvas, draw);
  const at = (/** @type {MouseEvent} */ event) =>
    Math.max(0, Math.min(count - 1, Math.floor((event.offsetX / Math.max(surface.width, 1)) * count)));
  canvas.addEventListener("pointermove", (event) =>
    showTip(event.clientX, event.clientY, tip(at(event))));
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => choose(at(event)));
  return { element: canvas, destroy: () => surface.destroy() };
}
