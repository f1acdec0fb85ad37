/** Where blocks lie on the map: over time from the lowest address up, or line by line at one moment. */

import { CATEGORIES, REST } from "../../core/colors.js";
import { bytes, count, counted, worded } from "../../core/format.js";
import { bufferColors, isOneGroup } from "./buffer-colors.js";
import { FONT, color, fitted, xOf } from "./frame.js";
import { WORDING } from "../../core/wording.js";

const GAP_PX = 6;
const LINE_GAP_PX = 3;
const LEAST_LINES = 8;
const MOST_LINE_PX = 22;
const LEAST_LINE_PX = 7;
const HATCH_PX = 6;

/**
 * The answer of `address_map`; docs/memory-over-time.md has every field.
 * @typedef {object} AddressMap
 * @property {string} view
 * @property {string | null} allocator
 * @property {string | null} reason
 * @property {any[]} reports
 * @property {(number | null)[]} has_listed
 * @property {{address: string[], bytes: number[]} | null} regions
 * @property {Blocks | null} blocks
 * @property {number} others
 * @property {{region: number[], offset: number[], bytes: number[], count: number, total_bytes: number, largest_bytes: number} | null} holes
 * @property {{rounded_bytes: number | null, requested_bytes: number | null, op: string | null} | null} failed
 * @property {Segments | null} [segments] what the allocator had of its device, over time
 * @property {"moment" | "end" | null} [segments_of] when it had those whose regions a moment has
 * @property {{rows: number, columns: number, row: number[], first: number[], last: number[]}} [touched]
 * @property {number} [start_ps]
 * @property {number} [end_ps]
 * @property {number} [limit_bytes]
 * @property {Record<string, unknown>} [settings]
 * @property {string | null} [cause]
 */
/**
 * @typedef {object} Blocks
 * @property {number[]} region
 * @property {number[]} offset
 * @property {number[]} bytes
 * @property {string[]} [state]
 * @property {(number | null)[]} record
 * @property {(number | null)[]} op
 * @property {string[]} ops
 * @property {(number | null)[]} start_ps
 * @property {(number | null)[]} end_ps
 */
/**
 * @typedef {object} Segments
 * @property {number[]} region
 * @property {number[]} offset
 * @property {number[]} bytes
 * @property {(number | null)[]} start_ps
 * @property {(number | null)[]} end_ps
 * @property {number} others how many more there are
 * @property {number} records how many records of the profile take or return segments
 */
/** @typedef {{x: number, y: number, width: number, height: number, block: number, hole: number}} Box */
/** @typedef {import("./frame.js").Frame} Frame */

/**
 * The names of the colors of blocks: of the twelve ops with most bytes, else grey. Where ops do not
 * tell blocks apart, each record has its own, and blocks without one are grey; where none has one, all
 * are alike.
 * @param {Blocks} blocks
 */
export function colorsOf({ ops, op, bytes: sizes, record }) {
  if (record.every((one) => one === null)) return record.map(() => CATEGORIES[0] ?? REST);
  if (isOneGroup(ops)) {
    const own = bufferColors(record, record.slice(1).map((_, place) => [place, place + 1]));
    return own.map((name, place) => (record[place] === null ? REST : name));
  }
  const weights = ops.map(() => 0);
  op.forEach((code, place) => {
    if (code !== null) weights[code] = (weights[code] ?? 0) + (sizes[place] ?? 0);
  });
  const names = ops.map(() => REST);
  weights.map((_, code) => code).sort((one, other) => (weights[other] ?? 0) - (weights[one] ?? 0))
    .slice(0, CATEGORIES.length).sort((one, other) => one - other)
    .forEach((code, place) => (names[code] = CATEGORIES[place] ?? REST));
  return op.map((code) => (code === null ? REST : names[code] ?? REST));
}

/**
 * Over time: every region a band, to scale, the lowest address at the bottom.
 * @param {Frame} frame
 * @param {AddressMap} map
 * @returns {Box[]} the blocks, and as holes the segments, or where these are not known the bands
 */
export function boxesOverTime(frame, map) {
  const { regions, blocks, segments } = map;
  if (!regions || !blocks) return [];
  const { left, right, top, bottom } = frame;
  const bands = bandsOf(regions.bytes, top, bottom);
  /** @type {Box[]} */
  const boxes = segments ? [] : bands.map(({ over, height }, hole) =>
    ({ x: left, y: over, width: right - left, height, block: -1, hole }));
  /** @param {Blocks | Segments} of @param {boolean} isHole */
  const add = (of, isHole) => of.region.forEach((region, n) => {
    const band = bands[region];
    if (!band) return;
    const begin = of.start_ps[n] ?? null, end = of.end_ps[n] ?? null;
    const x = begin === null ? left : Math.max(xOf(frame, begin), left);
    const over = end === null ? right : Math.min(xOf(frame, end), right);
    const scale = band.height / (regions.bytes[region] || 1);
    const height = Math.max((of.bytes[n] ?? 0) * scale, 0.6);
    const y = band.over + band.height - (of.offset[n] ?? 0) * scale - height;
    if (over > left && x < right) {
      boxes.push({ x, y, width: Math.max(over - x, 0.6), height, block: isHole ? -1 : n, hole: isHole ? n : -1 });
    }
  });
  if (segments) add(segments, true);
  add(blocks, false);
  return boxes;
}

/**
 * Where each region's band lies.
 * @param {number[]} sizes
 * @param {number} top
 * @param {number} bottom
 */
export function bandsOf(sizes, top, bottom) {
  const gap = Math.min(GAP_PX, (bottom - top) / (3 * Math.max(sizes.length, 1)));
  const whole = sizes.reduce((sum, size) => sum + size, 0) || 1;
  const room = bottom - top - gap * Math.max(sizes.length - 1, 0);
  let y = bottom;
  return sizes.map((size) => {
    const height = (size / whole) * room;
    y -= height;
    const band = { over: y, height };
    y -= gap;
    return band;
  });
}

/**
 * At one moment: regions in lines of so many bytes, each region on lines of its own.
 * @param {number[]} sizes
 */
export function linesOf(sizes) {
  const largest = Math.max(1, ...sizes), whole = sizes.reduce((sum, size) => sum + size, 0);
  const perLine = Math.ceil(Math.max(Math.min(largest, whole / LEAST_LINES), largest / 24, 1));
  let line = 0;
  const first = sizes.map((size) => {
    const own = line;
    line += Math.max(1, Math.ceil(size / perLine));
    return own;
  });
  const height = Math.min(MOST_LINE_PX, Math.max(LEAST_LINE_PX, 300 / Math.max(line, 1)));
  return { perLine, first, lines: line, height };
}

/**
 * The boxes of blocks and holes; one that does not end with its line goes on in the next.
 * @param {AddressMap} map
 * @param {number} left
 * @param {number} width
 * @param {number} top
 * @returns {Box[]}
 */
export function boxesAtMoment(map, left, width, top) {
  const { regions, blocks, holes } = map;
  if (!regions || !blocks) return [];
  const { perLine, first, height } = linesOf(regions.bytes);
  const scale = width / perLine;
  /** @type {Box[]} */
  const boxes = [];
  const add = (/** @type {number} */ region, /** @type {number} */ offset, /** @type {number} */ size,
    /** @type {number} */ block, /** @type {number} */ hole) => {
    for (let at = offset; at < offset + size;) {
      const line = Math.floor(at / perLine), next = Math.min((line + 1) * perLine, offset + size);
      boxes.push({ x: left + (at - line * perLine) * scale,
        y: top + ((first[region] ?? 0) + line) * (height + LINE_GAP_PX),
        width: Math.max((next - at) * scale, 0.4), height, block, hole });
      at = next;
    }
  };
  holes?.region.forEach((region, hole) =>
    add(region, holes.offset[hole] ?? 0, holes.bytes[hole] ?? 0, -1, hole));
  blocks.region.forEach((region, block) =>
    add(region, blocks.offset[block] ?? 0, blocks.bytes[block] ?? 0, block, -1));
  return boxes;
}

/**
 * Where segments begin and end: a line around each.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 * @param {Box[]} boxes
 */
export function paintEdges(context, colors, boxes) {
  context.strokeStyle = color(colors, "quiet");
  context.lineWidth = 1;
  for (const { x, y, width, height, hole } of boxes) {
    if (hole >= 0 && width > 2 && height > 2) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }
}

/** How high a map of one moment is, the failed request included. @param {AddressMap} map */
export function heightAtMoment(map) {
  const { lines, height, perLine } = linesOf(map.regions?.bytes ?? []);
  const failed = map.failed?.rounded_bytes ?? 0;
  const more = failed ? 24 + Math.ceil(failed / perLine) * (height + LINE_GAP_PX) : 0;
  return 8 + lines * (height + LINE_GAP_PX) + more;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 * @param {Box[]} boxes
 * @param {string[]} names of the colors of blocks
 * @param {Blocks} blocks
 * @param {number | null} chosen a record
 */
export function paintBoxes(context, colors, boxes, names, blocks, chosen) {
  const hatch = hatchOf(context, colors);
  for (const { x, y, width, height, block, hole } of boxes) {
    if (block < 0) {
      if (hole < 0) continue;
      context.fillStyle = color(colors, "shade");
      context.fillRect(x, y, width, height);
      context.fillStyle = hatch;
      context.fillRect(x, y, width, height);
      continue;
    }
    const state = blocks.state?.[block] ?? "in_use";
    if (state === "free") continue;
    context.fillStyle = state === "awaiting_free" ? color(colors, "warn") : color(colors, names[block] ?? REST);
    context.fillRect(x, y, width, height);
    if (width > 3 && height > 3) {
      context.fillStyle = color(colors, "panel");
      context.fillRect(x + width - 0.7, y, 0.7, height);
      context.fillRect(x, y, width, 0.7);
    }
  }
  context.strokeStyle = color(colors, "text");
  context.lineWidth = 2;
  for (const { x, y, width, height, block } of boxes) {
    if (block >= 0 && chosen !== null && blocks.record[block] === chosen) {
      context.strokeRect(x, y, Math.max(width, 2), Math.max(height, 2));
    }
  }
  context.lineWidth = 1;
}

/**
 * The request that failed, beside the holes and to their scale.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 * @param {AddressMap} map
 * @param {number} left
 * @param {number} width
 * @param {number} top
 */
export function paintFailed(context, colors, map, left, width, top) {
  const size = map.failed?.rounded_bytes ?? 0;
  if (!size) return;
  const { perLine, lines, height } = linesOf(map.regions?.bytes ?? []);
  let y = top + lines * (height + LINE_GAP_PX) + 18;
  context.font = FONT;
  context.fillStyle = color(colors, "bad");
  context.textAlign = "left";
  context.textBaseline = "bottom";
  const largest = map.holes?.largest_bytes ?? 0;
  const text = worded(map.failed?.op ? WORDING.map.failed_for : WORDING.map.failed,
    { size: bytes(size), op: map.failed?.op ?? "", hole: bytes(largest) });
  context.fillText(fitted(context, text, width), left, y - 2);
  for (let at = 0; at < size; at += perLine) {
    const part = Math.min(perLine, size - at);
    context.fillRect(left, y, Math.max((part / perLine) * width, 1), height);
    y += height + LINE_GAP_PX;
  }
}

/**
 * Thin diagonal lines: what is in no use.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 */
function hatchOf(context, colors) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = HATCH_PX;
  const own = tile.getContext("2d");
  if (!own) return color(colors, "line");
  own.strokeStyle = color(colors, "quiet");
  own.globalAlpha = 0.45;
  own.beginPath();
  own.moveTo(0, HATCH_PX);
  own.lineTo(HATCH_PX, 0);
  own.stroke();
  return context.createPattern(tile, "repeat") ?? color(colors, "line");
}

/** What the segments do over time, or of when they are. @param {AddressMap} map @returns {string[]} */
export function segmentsText({ view, segments, segments_of: of }) {
  if (of === "moment") return [WORDING.map.segments_then];
  if (of === "end") return [WORDING.map.segments_at_end];
  if (view !== "time" || !segments) return [];
  const taken = segments.start_ps.filter((at) => at !== null).length;
  const returned = segments.end_ps.filter((at) => at !== null).length;
  if (!segments.records) return [WORDING.map.segments_throughout];
  return [worded(WORDING.map.segments, { taken: count(taken), returned: count(returned),
    stretches: counted(segments.bytes.length + segments.others, "stretch", "stretches") })];
}
