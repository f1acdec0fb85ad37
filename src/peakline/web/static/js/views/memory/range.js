/** What is drawn over memory in use: the range from A to B, and what was taken from the device. */

import { bytes, time } from "../../core/format.js";
import { FONT, color, crisp, line, xOf, yOf } from "./frame.js";

/**
 * @param {import("./frame.js").Frame} frame
 * @param {number} from
 * @param {number} to
 */
export function paintRange(frame, from, to) {
  const { context, colors, left, right, top, bottom } = frame;
  const begin = xOf(frame, from), end = xOf(frame, to);
  const first = Math.max(begin, left), last = Math.min(end, right);
  if (last < left || first > right) return;
  context.save();
  context.fillStyle = color(colors, "accent");
  context.globalAlpha = 0.14;
  context.fillRect(first, top, Math.max(last - first, 1), bottom - top);
  context.globalAlpha = 1;
  context.strokeStyle = color(colors, "accent");
  context.lineWidth = 1.5;
  context.setLineDash([5, 3]);
  for (const [x, name] of /** @type {[number, string][]} */ ([[begin, "A"], [end, "B"]])) {
    if (x < left - 1 || x > right + 1) continue;
    line(context, crisp(x), top, crisp(x), bottom);
    label(frame, name, x, top + 9, name === "A" ? "left" : "right");
  }
  if (last - first > 110) label(frame, time(to - from), (first + last) / 2, top + 9, "center");
  context.restore();
}

/**
 * @param {import("./frame.js").Frame} frame
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {"left" | "right" | "center"} side of the line that it stands on
 */
function label({ context, colors, left, right }, text, x, y, side) {
  context.font = `bold ${FONT}`;
  const wide = context.measureText(text).width + 8;
  const wished = side === "left" ? x - wide : side === "right" ? x : x - wide / 2;
  const begin = Math.min(Math.max(wished, left), right - wide);
  context.fillStyle = color(colors, "accent");
  context.fillRect(begin, y - 8, wide, 16);
  context.fillStyle = color(colors, "panel");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, begin + wide / 2, y);
}

/**
 * What the allocator had of its device, as a line above what is in use.
 * @param {import("./frame.js").Frame} frame
 * @param {import("./layers.js").Stacked} answer
 */
export function paintReserved(frame, { reserved, start_ps: start, end_ps: end, width }) {
  const { context, colors, viewport, left, right, top } = frame;
  if (!reserved?.length) return;
  const xAt = (/** @type {number} */ pixel) =>
    left + viewport.x(start + (pixel * (end - start)) / width, right - left);
  context.save();
  context.beginPath();
  context.rect(left, top - 2, right - left, frame.bottom - top + 3);
  context.clip();
  context.beginPath();
  reserved.forEach((value, pixel) => {
    const y = yOf(frame, value);
    if (pixel) context.lineTo(xAt(pixel), y);
    else context.moveTo(xAt(pixel), y);
    context.lineTo(xAt(pixel + 1), y);
  });
  context.strokeStyle = color(colors, "warn");
  context.lineWidth = 1.5;
  context.setLineDash([2, 2]);
  context.stroke();
  context.setLineDash([]);
  const last = reserved[reserved.length - 1] ?? 0;
  context.font = FONT;
  context.fillStyle = color(colors, "warn");
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillText(`reserved ${bytes(last)}`, right - 5, yOf(frame, last) - 3);
  context.restore();
}
