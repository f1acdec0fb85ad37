/** Bars of steps; where several share a pixel, the shortest, the mean with its parts, the longest. */

import { PARTS } from "../../core/parts.js";

/** @typedef {import("./source.js").Bin} Bin */
/** @typedef {import("./source.js").Columns} Columns */

/** Hatching shows on bars that are at least so wide. */
const PATTERN_PX = 3;
/** Of many slow steps so many are marked. */
const MARKS = 40;
/** What the record does not hold whole is drawn so pale. */
const CUT_OFF = 0.4;

/**
 * Where 0 is, how many pixels a picosecond has, and the left edge of a step.
 * @typedef {{bottom: number, scale: number, x(step: number): number}} Where
 */

/**
 * The parts of a column from the bottom upwards, each with where it begins and how tall it is.
 * @param {Columns} columns
 * @param {Bin} bin
 * @param {number} scale
 * @param {number} bottom
 * @param {(part: (typeof PARTS)[number], y: number, tall: number) => void} draw
 */
function stack(columns, bin, scale, bottom, draw) {
  let y = bottom;
  for (const part of PARTS) {
    const tall = columns.part(bin, part.name) * scale;
    if (tall > 0) draw(part, y -= tall, tall);
  }
}

/**
 * The parts of one step, stacked.
 * @param {CanvasRenderingContext2D} paint
 * @param {{colors: Record<string, string>, patterns: Record<"/" | "x", CanvasPattern | string>}} look
 * @param {Columns} columns
 * @param {Bin} bin of one step
 * @param {Where} where
 */
export function paintBar(paint, { colors, patterns }, columns, bin, { bottom, scale, x: xOf }) {
  const each = xOf(bin.first + 1) - xOf(bin.first);
  const wide = Math.max(each - (each >= 5 ? Math.min(each * 0.15, 6) : 0), 1);
  const x = xOf(bin.first) + (each - wide) / 2;
  paint.globalAlpha = bin.isCutOff ? CUT_OFF : 1;
  stack(columns, bin, scale, bottom, (part, y, tall) => {
    paint.fillStyle = colors[part.color] ?? "";
    paint.fillRect(x, y, wide, tall);
    if (part.pattern && wide >= PATTERN_PX) {
      paint.fillStyle = patterns[part.pattern];
      paint.fillRect(x, y, wide, tall);
    }
  });
  paint.globalAlpha = 1;
}

/**
 * The mean as stacked parts, the shortest and the longest as lines around it.
 * @param {CanvasRenderingContext2D} paint
 * @param {Record<string, string>} colors
 * @param {Columns} columns
 * @param {Bin[]} bins those of them that are in view
 * @param {Where} where
 */
export function paintEnvelope(paint, colors, columns, bins, { bottom, scale, x: xOf }) {
  for (const bin of bins) {
    const x = Math.floor(xOf(bin.first)), wide = Math.max(Math.floor(xOf(bin.last + 1)) - x, 1);
    stack(columns, bin, scale, bottom, (part, y, tall) => {
      paint.fillStyle = colors[part.color] ?? "";
      paint.fillRect(x, y, wide, tall);
    });
    paint.fillStyle = colors["shade"] ?? "";
    paint.fillRect(x, bottom - bin.max * scale, wide, Math.max((bin.max - bin.mean) * scale, 0));
  }
  for (const [name, color] of /** @type {const} */ ([["max", "text"], ["min", "panel"]])) {
    paint.strokeStyle = colors[color] ?? "";
    paint.lineWidth = 1;
    paint.beginPath();
    bins.forEach((bin, place) => {
      const x = (xOf(bin.first) + xOf(bin.last + 1)) / 2, y = bottom - bin[name] * scale;
      if (place) paint.lineTo(x, y);
      else paint.moveTo(x, y);
    });
    paint.stroke();
  }
}

/**
 * Of columns with slow steps those to mark: those that warm up, then the longest, none beside another;
 * of very many as far apart as spreads them over the whole width.
 * @param {Bin[]} bins
 * @param {(bin: Bin) => number} xOf
 * @param {number} apart pixels
 * @param {number} width
 */
export function marked(bins, xOf, apart, width) {
  const slow = bins.filter((bin) => bin.isSlow || bin.isWarmUp)
    .sort((one, other) => Number(other.isWarmUp) - Number(one.isWarmUp) || other.max - one.max);
  const least = slow.length > MARKS ? Math.max(apart, width / MARKS) : apart;
  /** @type {Bin[]} */
  const chosen = [];
  for (const bin of slow) {
    if (chosen.length > MARKS) break;
    if (chosen.every((one) => Math.abs(xOf(one) - xOf(bin)) >= least)) chosen.push(bin);
  }
  return chosen;
}

/**
 * A triangle above a bar.
 * @param {CanvasRenderingContext2D} paint
 * @param {number} middle
 * @param {number} half
 * @param {number} y of the bar's top
 */
export function paintMark(paint, middle, half, y) {
  paint.beginPath();
  paint.moveTo(middle - half, y - 9);
  paint.lineTo(middle + half, y - 9);
  paint.lineTo(middle, y - 2);
  paint.fill();
}
