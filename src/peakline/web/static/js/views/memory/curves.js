/**
 * Curves of memory in use: the band from least to most of every pixel, and the line of its last; of
 * its most where so much happens in most pixels that their last is a matter of chance.
 */

import { color, yOf } from "./frame.js";

const DENSE = 0.6;

/** @typedef {import("./counters.js").Curves} Curves */
/** @typedef {import("./frame.js").Frame} Frame */
/** @typedef {{low: Float64Array, high: Float64Array, last: Float64Array}} Series */

/**
 * Draw one allocator's curve from the finest answer there is, and outside of it from that of the
 * whole profile; stretched where it is of another stretch than what is in view.
 * @param {Frame} frame
 * @param {Curves | null} fine
 * @param {Curves | null} whole
 * @param {string} allocator
 * @param {string} stroke
 * @param {boolean} isFilled down to the bottom
 */
export function paintCurve(frame, fine, whole, allocator, stroke, isFilled) {
  const { context, viewport, left, right, top, bottom } = frame;
  const parts = [];
  const begin = fine ? Math.max(viewport.from, Math.min(fine.from, viewport.to)) : viewport.to;
  const end = fine ? Math.min(viewport.to, Math.max(fine.to, viewport.from)) : viewport.to;
  if (begin > viewport.from) parts.push({ curves: whole, from: viewport.from, to: begin });
  if (fine && end > begin) parts.push({ curves: fine, from: begin, to: end });
  if (end < viewport.to && fine) parts.push({ curves: whole, from: Math.max(end, viewport.from), to: viewport.to });
  context.save();
  context.beginPath();
  context.rect(left, top - 2, right - left, bottom - top + 3);
  context.clip();
  for (const { curves, from, to } of parts) {
    const series = curves?.series.get(allocator);
    if (curves && series) {
      paintPart(frame, curves, series, from, to, stroke, isFilled);
    }
  }
  context.restore();
}

/**
 * @param {Frame} frame
 * @param {Curves} curves
 * @param {Series} series
 * @param {number} from
 * @param {number} to
 * @param {string} stroke
 * @param {boolean} isFilled
 */
function paintPart(frame, curves, series, from, to, stroke, isFilled) {
  const { context, viewport, left, right } = frame;
  const width = right - left;
  const perPixel = (curves.to - curves.from) / curves.width;
  const first = Math.max(0, Math.floor((from - curves.from) / perPixel));
  const end = Math.min(curves.width, Math.ceil((to - curves.from) / perPixel));
  // Zoomed out of an answer, several of its pixels share one of the screen.
  const merged = Math.max(1, Math.floor((viewport.span / width) / perPixel / devicePixelRatio));
  const area = new Path2D(), band = new Path2D(), line = new Path2D();
  /** @type {{x: number, low: number, high: number}[]} */
  let run = [];
  const xAt = (/** @type {number} */ n) => left + viewport.x(curves.from + n * perPixel, width);
  const flush = (/** @type {number} */ over) => {
    if (run.length) close(run, over, frame.bottom, area, band);
    run = [];
  };
  let isOpen = false;
  const isDense = denseness(series, first, end) > DENSE;
  for (let n = first; n < end; n += merged) {
    let low = Infinity, high = -Infinity, last = NaN;
    for (let k = n; k < Math.min(n + merged, end); k++) {
      const value = series.last[k] ?? NaN;
      if (Number.isNaN(value)) continue;
      low = Math.min(low, series.low[k] ?? value);
      high = Math.max(high, series.high[k] ?? value);
      last = value;
    }
    const x = xAt(n);
    if (Number.isNaN(last)) {
      flush(x);
      isOpen = false;
      continue;
    }
    run.push({ x, low: yOf(frame, low), high: yOf(frame, high) });
    const y = yOf(frame, isDense ? high : last);
    if (isOpen) line.lineTo(x, y);
    else line.moveTo(x, y);
    line.lineTo(xAt(Math.min(n + merged, end)), y);
    isOpen = true;
  }
  flush(xAt(end));
  context.fillStyle = stroke;
  if (isFilled) {
    context.globalAlpha = 0.13;
    context.fill(area);
  }
  context.globalAlpha = 0.38;
  context.fill(band);
  context.globalAlpha = 1;
  context.strokeStyle = stroke;
  context.lineWidth = isDense ? 0.75 : 1.25;
  context.lineJoin = "round";
  context.stroke(line);
  context.lineWidth = 1;
}

/**
 * The share of pixels in which the value changes.
 * @param {Series} series
 * @param {number} first
 * @param {number} end
 */
function denseness(series, first, end) {
  let many = 0;
  for (let n = first; n < end; n++) if ((series.low[n] ?? 0) < (series.high[n] ?? 0)) many += 1;
  return end > first ? many / (end - first) : 0;
}

/**
 * Close the areas under and between a run of pixels, as steps.
 * @param {{x: number, low: number, high: number}[]} run
 * @param {number} over where the last one ends
 * @param {number} bottom
 * @param {Path2D} area
 * @param {Path2D} band
 */
function close(run, over, bottom, area, band) {
  const begin = run[0]?.x ?? over;
  area.moveTo(begin, bottom);
  band.moveTo(begin, run[0]?.high ?? bottom);
  run.forEach(({ x, high }, place) => {
    const next = run[place + 1]?.x ?? over;
    band.lineTo(x, high);
    band.lineTo(next, high);
  });
  for (let place = run.length - 1; place >= 0; place--) {
    const pixel = run[place];
    if (!pixel) continue;
    band.lineTo(run[place + 1]?.x ?? over, pixel.low);
    band.lineTo(pixel.x, pixel.low);
  }
  run.forEach(({ x, low }, place) => {
    area.lineTo(x, low);
    area.lineTo(run[place + 1]?.x ?? over, low);
  });
  area.lineTo(over, bottom);
  area.closePath();
  band.closePath();
}

/**
 * The least and the largest value of some allocators in a stretch of an answer; null for none.
 * @param {Curves} curves
 * @param {string[]} allocators
 * @param {number} from
 * @param {number} to
 * @returns {[number, number] | null}
 */
export function extremes(curves, allocators, from, to) {
  const perPixel = (curves.to - curves.from) / curves.width;
  const first = Math.max(0, Math.floor((from - curves.from) / perPixel));
  const end = Math.min(curves.width, Math.ceil((to - curves.from) / perPixel));
  let low = Infinity, high = -Infinity;
  for (const name of allocators) {
    const series = curves.series.get(name);
    for (let n = first; series && n < end; n++) {
      const least = series.low[n] ?? NaN;
      if (Number.isNaN(least)) continue;
      low = Math.min(low, least);
      high = Math.max(high, series.high[n] ?? least);
    }
  }
  return high >= low ? [low, high] : null;
}

/**
 * What an allocator was at a time, as finely as an answer tells.
 * @param {Curves | null} curves
 * @param {string} allocator
 * @param {number} time
 * @returns {{low: number, high: number, last: number} | null}
 */
export function valueAt(curves, allocator, time) {
  const series = curves?.series.get(allocator);
  if (!curves || !series || time < curves.from || time >= curves.to) return null;
  const n = Math.floor(((time - curves.from) * curves.width) / (curves.to - curves.from));
  const last = series.last[n] ?? NaN;
  if (Number.isNaN(last)) return null;
  return { low: series.low[n] ?? last, high: series.high[n] ?? last, last };
}

/** The color of the k-th allocator. @param {Record<string, string>} colors @param {number} place */
export function seriesColor(colors, place) {
  return color(colors, `series-${(place % 8) + 1}`);
}
