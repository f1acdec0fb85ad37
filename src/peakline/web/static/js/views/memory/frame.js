/** Where times and bytes lie on the chart, and the text and lines that tell them. */

import { byteMarks, timeMarks } from "../../core/axis.js";
import { bytes, worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const MARK_PX = 48;

/**
 * @typedef {object} Frame
 * @property {CanvasRenderingContext2D} context
 * @property {Record<string, string>} colors
 * @property {import("../../core/viewport.js").Viewport} viewport
 * @property {number} left where time begins, CSS pixels
 * @property {number} right
 * @property {number} top where the most bytes are
 * @property {number} bottom
 * @property {number} low the bytes at the bottom
 * @property {number} high the bytes at the top
 */

/**
 * @param {Frame} frame
 * @param {number} time
 */
export function xOf({ viewport, left, right }, time) {
  return left + viewport.x(time, right - left);
}

/**
 * @param {Frame} frame
 * @param {number} value bytes
 */
export function yOf({ top, bottom, low, high }, value) {
  return bottom - ((value - low) / Math.max(high - low, 1)) * (bottom - top);
}

/**
 * Lines and texts of bytes at the left, of times at the bottom.
 * @param {Frame} frame
 */
export function paintAxes(frame) {
  const { context, colors, viewport, left, right, top, bottom, low, high } = frame;
  context.font = FONT;
  context.lineWidth = 1;
  context.strokeStyle = color(colors, "line");
  context.fillStyle = color(colors, "quiet");
  context.textAlign = "right";
  context.textBaseline = "middle";
  const many = Math.max(2, Math.floor((bottom - top) / MARK_PX));
  for (const mark of byteMarks(high - low, many)) {
    const value = low + mark, y = crisp(yOf(frame, value));
    line(context, left, y, right, y);
    // Above a floor that is no round number, the marks say how much more.
    const text = low === 0 || mark === 0 ? bytes(value) : `+${bytes(mark)}`;
    context.fillText(text, left - 8, y);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const width = right - left;
  for (const { time, text } of timeMarks(viewport.from, viewport.to, width)) {
    const x = crisp(xOf(frame, time));
    context.globalAlpha = 0.55;
    line(context, x, top, x, bottom + 4);
    context.globalAlpha = 1;
    const half = context.measureText(text).width / 2;
    if (x - half > left - 40 && x + half < right + 10) context.fillText(text, x, bottom + 7);
  }
  line(context, left, crisp(bottom), right, crisp(bottom));
}

/**
 * Steps as bands behind everything, named above where there is room.
 * @param {Frame} frame
 * @param {import("./steps.js").Steps} steps
 * @param {number} strip height of the names' strip above the chart
 */
export function paintSteps(frame, steps, strip) {
  const { context, colors, viewport, left, right, top, bottom } = frame;
  const [first, end] = steps.between(viewport.from, viewport.to);
  const width = right - left;
  context.font = FONT;
  if ((end - first) * 3 > width) {
    context.fillStyle = color(colors, "quiet");
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(worded(WORDING.memory.steps, { steps: (end - first).toLocaleString("en-US") }),
      left + 6, top - strip / 2);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(left, top - strip, width, bottom - top + strip);
  context.clip();
  let free = -Infinity;
  for (let place = first; place < end; place++) {
    const step = steps.list[place];
    if (!step || step.end_ps < viewport.from) continue;
    const begin = xOf(frame, step.start_ps), over = xOf(frame, step.end_ps);
    context.fillStyle = color(colors, "band");
    if (place % 2 === 0) context.fillRect(begin, top - strip, Math.max(over - begin, 1), bottom - top + strip);
    context.strokeStyle = color(colors, "line");
    line(context, crisp(begin), top - strip, crisp(begin), top);
    const seen = Math.max(begin, left), room = Math.min(over, right) - seen - 8;
    if (room < 8 || seen < free) continue;
    context.fillStyle = color(colors, "quiet");
    context.textAlign = "left";
    context.textBaseline = "middle";
    const text = shortest(context, step.name || String(step.step_id), room);
    if (text) context.fillText(text, seen + 4, top - strip / 2);
    free = seen + 4 + context.measureText(text).width;
  }
  context.restore();
}

/**
 * A line across the chart with its name.
 * @param {Frame} frame
 * @param {number} value bytes
 * @param {string} text
 * @param {string} stroke
 * @param {number[]} dash
 * @param {"left" | "right"} [align] where its name stands
 */
export function paintLevel(frame, value, text, stroke, dash, align = "right") {
  const { context, colors, left, right, top, bottom } = frame;
  const y = crisp(yOf(frame, value));
  if (y < top - 1 || y > bottom + 1) return;
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.setLineDash(dash);
  line(context, left, y, right, y);
  context.setLineDash([]);
  context.lineWidth = 1;
  context.font = FONT;
  const room = (right - left) * 0.6, isLong = context.measureText(text).width > room;
  // Where there is no room for words, the number stands at the right, off the peak's own name.
  const label = isLong ? fitted(context, /^[\d.,]+ \S+/.exec(text)?.[0] ?? text, room) : text;
  const wide = context.measureText(label).width;
  const above = y - 18 > top - 2;
  context.fillStyle = color(colors, "panel");
  context.globalAlpha = 0.8;
  const begin = align === "left" && !isLong ? left + 6 : right - wide - 5;
  context.fillRect(begin - 3, above ? y - 17 : y + 2, wide + 6, 15);
  context.globalAlpha = 1;
  context.fillStyle = stroke;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(label, begin, above ? y - 9 : y + 10);
}

/**
 * A mark on a curve, with its name beside it: the peak.
 * @param {Frame} frame
 * @param {number} time
 * @param {number} value
 * @param {string} text
 * @param {string} fill
 */
export function paintPeak(frame, time, value, text, fill) {
  const { context, colors, left, right, top } = frame;
  const x = xOf(frame, time), y = Math.max(yOf(frame, value), top + 1);
  if (x < left - 6 || x > right + 6) return;
  context.fillStyle = fill;
  context.strokeStyle = color(colors, "panel");
  context.beginPath();
  context.moveTo(x, y - 1);
  context.lineTo(x - 6, y - 11);
  context.lineTo(x + 6, y - 11);
  context.closePath();
  context.fill();
  context.stroke();
  context.font = FONT;
  const wide = context.measureText(text).width;
  const toLeft = x + 12 + wide > right;
  context.textAlign = toLeft ? "right" : "left";
  context.textBaseline = "middle";
  context.globalAlpha = 0.8;
  context.fillStyle = color(colors, "panel");
  context.fillRect(toLeft ? x - 13 - wide : x + 9, y - 14, wide + 4, 14);
  context.globalAlpha = 1;
  context.fillStyle = color(colors, "text");
  context.fillText(text, toLeft ? x - 11 : x + 11, y - 7);
}

/**
 * The moment that is looked at: a line from top to bottom with its time.
 * @param {Frame} frame
 * @param {number} time
 * @param {string} text
 * @param {number} strip
 */
export function paintMoment(frame, time, text, strip) {
  const { context, colors, left, right, top, bottom } = frame;
  const x = crisp(xOf(frame, time));
  if (x < left - 1 || x > right + 1) return;
  context.strokeStyle = context.fillStyle = color(colors, "accent");
  context.lineWidth = 1.5;
  line(context, x, top - strip, x, bottom + 4);
  context.lineWidth = 1;
  context.font = FONT;
  const wide = context.measureText(text).width + 10;
  const begin = Math.min(Math.max(x - wide / 2, left), right - wide);
  context.beginPath();
  context.roundRect(begin, bottom + 4, wide, 17, 4);
  context.fill();
  context.fillStyle = color(colors, "panel");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, begin + wide / 2, bottom + 13);
}

/**
 * A buffer's life: a bar from its begin to its end, with open ends where these are not known.
 * @param {Frame} frame
 * @param {{start_ps: number | null, end_ps: number | null}} life
 * @param {string} text
 * @param {number} top of the bar
 * @param {number} height
 */
export function paintLife(frame, life, text, top, height) {
  const { context, colors, left, right } = frame;
  const begin = life.start_ps === null ? left - 10 : xOf(frame, life.start_ps);
  const end = life.end_ps === null ? right + 10 : xOf(frame, life.end_ps);
  const from = Math.max(begin, left), to = Math.min(Math.max(end, begin + 2), right);
  context.font = FONT;
  context.textBaseline = "middle";
  if (to < left || from > right) {
    context.fillStyle = color(colors, "quiet");
    context.textAlign = to < left ? "left" : "right";
    context.fillText(to < left ? `◂ ${text}` : `${text} ▸`, to < left ? left + 4 : right - 4,
      top + height / 2);
    return;
  }
  context.fillStyle = color(colors, "series-2");
  context.globalAlpha = 0.3;
  context.fillRect(from, top, to - from, height);
  context.globalAlpha = 1;
  context.strokeStyle = color(colors, "series-2");
  context.lineWidth = 2;
  if (begin >= left) line(context, begin, frame.top, begin, top + height);
  if (end <= right) line(context, end, frame.top, end, top + height);
  line(context, from, top + height, to, top + height);
  context.lineWidth = 1;
  context.fillStyle = color(colors, "text");
  context.textAlign = "left";
  const room = to - from - 10;
  if (room >= 60) context.fillText(fitted(context, text, room), from + 5, top + height / 2);
  else if (right - to > 60) context.fillText(fitted(context, text, right - to - 8), to + 6, top + height / 2);
  else {
    context.textAlign = "right";
    context.fillText(fitted(context, text, from - left - 8), from - 6, top + height / 2);
  }
}

/**
 * @param {Record<string, string>} colors
 * @param {string} name
 */
export function color(colors, name) {
  return colors[name] ?? "#888888";
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} toX
 * @param {number} toY
 */
export function line(context, x, y, toX, toY) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
}

/** @param {number} place */
export function crisp(place) {
  return Math.round(place) + 0.5;
}

/**
 * A step's name, or where there is too little room the number that it ends with; else "".
 * @param {CanvasRenderingContext2D} context
 * @param {string} name
 * @param {number} room
 */
function shortest(context, name, room) {
  for (const text of [name, /\d+$/.exec(name)?.[0] ?? ""]) {
    if (text.length < 60 && context.measureText(text).width <= room) return text;
  }
  return room > 80 ? fitted(context, name, room) : "";
}

/**
 * A text, cut where it is wider than there is room; "" where nothing fits.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} room
 */
export function fitted(context, text, room) {
  let retained = text.length > 200 ? text.slice(0, 200) : text;
  if (retained === text && context.measureText(text).width <= room) return text;
  while (retained && context.measureText(`${retained}…`).width > room) retained = retained.slice(0, -1);
  return retained && `${retained}…`;
}
