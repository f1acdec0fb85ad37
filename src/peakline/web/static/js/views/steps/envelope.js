/** Steps of which several share a pixel: the shortest, the mean with its parts, and the longest. */

import { PARTS } from "../../core/parts.js";

/** @typedef {import("./facts.js").Step} Step */
/**
 * The steps of one pixel; places are among the chart's rows.
 * @typedef {object} Bin
 * @property {number} first
 * @property {number} last the last one itself
 * @property {number} longest the place of the longest
 * @property {number} min
 * @property {number} max
 * @property {number} mean
 * @property {number[]} parts means, in the order of `PARTS`
 */

/**
 * @param {Step[]} rows
 * @param {number} first
 * @param {number} last exclusive
 * @param {number} width pixels
 * @param {(place: number) => number} xOf a step's middle
 * @returns {(Bin | null)[]} per pixel; null where no step lies
 */
export function envelopeOf(rows, first, last, width, xOf) {
  /** @type {(Bin | null)[]} */
  const bins = new Array(Math.ceil(width)).fill(null);
  for (let place = first; place < last; place++) {
    const row = /** @type {any} */ (rows[place]);
    const x = Math.floor(xOf(place));
    if (x < 0 || x >= bins.length) continue;
    let bin = bins[x];
    if (!bin) {
      bin = { first: place, last: place, longest: place, min: row.wall_ps, max: row.wall_ps, mean: 0,
        parts: PARTS.map(() => 0) };
      bins[x] = bin;
    }
    bin.last = place;
    bin.mean += row.wall_ps;
    bin.min = Math.min(bin.min, row.wall_ps);
    if (row.wall_ps > bin.max) {
      bin.max = row.wall_ps;
      bin.longest = place;
    }
    for (const [number, { column }] of COLUMNS.entries()) bin.parts[number] += row[column] ?? 0;
  }
  for (const bin of bins) {
    if (!bin) continue;
    const many = bin.last - bin.first + 1;
    bin.mean /= many;
    bin.parts = bin.parts.map((sum) => sum / many);
  }
  return bins;
}

const COLUMNS = PARTS.map(({ name }) => ({ column: `${name}_ps` }));

/**
 * The mean as stacked parts, the shortest and the longest as lines around it.
 * @param {CanvasRenderingContext2D} paint
 * @param {Record<string, string>} colors
 * @param {(Bin | null)[]} bins
 * @param {{left: number, bottom: number, scale: number}} place where 0 is, and pixels per ps
 */
export function paintEnvelope(paint, colors, bins, { left, bottom, scale }) {
  bins.forEach((bin, x) => {
    if (!bin) return;
    let y = bottom;
    PARTS.forEach((part, number) => {
      const tall = (bin.parts[number] ?? 0) * scale;
      if (!(tall > 0)) return;
      y -= tall;
      paint.fillStyle = colors[part.color] ?? "";
      paint.fillRect(left + x, y, 1, tall);
    });
    paint.fillStyle = colors["shade"] ?? "";
    paint.fillRect(left + x, bottom - bin.max * scale, 1, Math.max((bin.max - bin.mean) * scale, 0));
  });
  for (const [name, color] of /** @type {const} */ ([["max", "text"], ["min", "panel"]])) {
    paint.strokeStyle = colors[color] ?? "";
    paint.lineWidth = 1;
    paint.beginPath();
    let isOpen = false;
    bins.forEach((bin, x) => {
      if (!bin) return;
      const y = bottom - bin[name] * scale;
      if (isOpen) paint.lineTo(left + x + 0.5, y);
      else paint.moveTo(left + x + 0.5, y);
      isOpen = true;
    });
    paint.stroke();
  }
}

/**
 * Of pixels with slow steps those to mark: the longest first, none beside another.
 * @param {(Bin | null)[]} bins
 * @param {(place: number) => boolean} isSlow
 * @param {number} apart pixels
 * @param {number} most
 * @returns {number[]} pixels
 */
export function slowPixels(bins, isSlow, apart, most) {
  const slow = bins.flatMap((bin, x) => (bin && isSlow(bin.longest) ? [x] : []));
  slow.sort((one, other) => (bins[other]?.max ?? 0) - (bins[one]?.max ?? 0));
  /** @type {number[]} */
  const chosen = [];
  for (const x of slow) {
    if (chosen.length >= most) break;
    if (chosen.every((one) => Math.abs(one - x) >= apart)) chosen.push(x);
  }
  return chosen;
}
