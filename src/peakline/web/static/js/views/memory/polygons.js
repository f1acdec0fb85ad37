/** Buffers as polygons: stacked in order of allocation; when one is freed, those above move down. */

import { CATEGORIES, REST } from "../../core/colors.js";
import { bytes, count, time, worded } from "../../core/format.js";
import { bufferColors, isOneGroup, neighboursOf } from "./buffer-colors.js";
import { color, yOf } from "./frame.js";
import { WORDING } from "../../core/wording.js";

const MOST_PIXELS = 2048;
/** What is lower is drawn as the grey ground of all buffers. */
const LEAST_PX = 0.5;
const BORDER_PX = 3;

/** @typedef {import("./frame.js").Frame} Frame */
/**
 * The answer of `memory_polygons`; docs/memory-over-time.md has every field.
 * @typedef {object} Answer
 * @property {string} allocator
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} width
 * @property {(number | null)[]} at_ps
 * @property {(number | null)[]} used
 * @property {(number | null)[]} below
 * @property {(number | null)[]} smaller
 * @property {(number | null)[]} unattributed
 * @property {{record: number[], bytes: number[], first: number[], last: number[], start_ps: (number | null)[], end_ps: (number | null)[], op: number[], ops: string[]}} buffers
 * @property {number} others
 * @property {number} unseen
 */
/**
 * Pieces of polygons as columns: a buffer lies at `y` bytes from pixel `from` to before `to`.
 * @typedef {{buffer: number[], from: number[], to: number[], y: number[]}} Pieces
 */

/**
 * Where every buffer lies: one piece for as long as nothing below it changes. `top` is per pixel
 * where the last one ends.
 * @param {Pick<Answer, "below" | "buffers">} answer
 * @returns {Pieces & {top: Float64Array}}
 */
export function layOut({ below, buffers }) {
  const { first, last, bytes: sizes } = buffers;
  /** @type {Pieces} */
  const pieces = { buffer: [], from: [], to: [], y: [] };
  const top = new Float64Array(below.length);
  /** @type {number[]} the buffers that are live, in order of allocation */
  let live = [];
  /** The piece that each of them is in. @type {Map<number, number>} */
  const open = new Map();
  let next = 0;
  for (let pixel = 0; pixel < below.length; pixel++) {
    const stays = live.filter((one) => (last[one] ?? 0) > pixel);
    for (const one of live) if ((last[one] ?? 0) <= pixel) open.delete(one);
    live = stays;
    // In order of allocation: who is live first at a pixel comes after all that are.
    while (next < first.length && (first[next] ?? 0) <= pixel) live.push(next++);
    let y = below[pixel] ?? 0;
    for (const one of live) {
      const piece = open.get(one);
      if (piece !== undefined && pieces.y[piece] === y) pieces.to[piece] = pixel + 1;
      else {
        open.set(one, pieces.y.length);
        pieces.buffer.push(one);
        pieces.from.push(pixel);
        pieces.to.push(pixel + 1);
        pieces.y.push(y);
      }
      y += sizes[one] ?? 0;
    }
    top[pixel] = y;
  }
  return { ...pieces, top };
}

export class Polygons {
  /** @type {Answer | null} */
  answer = null;
  /** @type {ReturnType<typeof layOut> | null} */
  #layout = null;
  #query = "";
  /** The names of the colors of the ops. @type {string[]} */
  #colors = [];
  /** Those of the buffers, where ops do not tell them apart. @type {string[] | null} */
  #own = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {() => void} result an answer is there
   */
  constructor(context, model, result) {
    this.context = context;
    this.model = model;
    this.found = result;
  }

  /**
   * What has to be requested; null where it is known.
   * @param {number} pixels
   */
  wanted(pixels) {
    const { viewport, allocator } = this.model;
    if (!allocator) return null;
    const query = { allocator: allocator.name, start_ps: viewport.from, end_ps: viewport.to,
      width: Math.min(pixels, MOST_PIXELS) };
    return JSON.stringify(query) === this.#query ? null : query;
  }

  /** @param {Record<string, string | number>} query */
  async ask(query) {
    const { data } = await this.context.tool("memory_polygons", query);
    this.#query = JSON.stringify(query);
    this.answer = data;
    this.#layout = data.buffers ? layOut(data) : null;
    this.#color();
    this.found();
  }

  /** The ops with most bytes have colors of their own, by name in the order of the first. */
  #color() {
    const { buffers = null, width = 0 } = this.answer ?? {};
    this.#own = buffers && isOneGroup(buffers.ops)
      ? bufferColors(buffers.record, neighboursOf(buffers, width)) : null;
    const { ops = [], op = [], bytes: sizes = [], first = [], last = [] } = this.answer?.buffers ?? {};
    const weights = ops.map(() => 0);
    op.forEach((code, place) => {
      weights[code] = (weights[code] ?? 0)
        + (sizes[place] ?? 0) * ((last[place] ?? 0) - (first[place] ?? 0));
    });
    const order = weights.map((_, code) => code)
      .sort((one, other) => (weights[other] ?? 0) - (weights[one] ?? 0));
    this.#colors = ops.map(() => REST);
    order.slice(0, CATEGORIES.length).sort((one, other) => one - other)
      .forEach((code, place) => (this.#colors[code] = CATEGORIES[place] ?? REST));
  }

  /** The answer, where it is of what is chosen now. */
  get known() {
    return this.answer?.allocator === this.model.allocator?.name && this.#layout ? this.answer : null;
  }

  /** Whether each buffer has a color of its own. */
  get isByBuffer() {
    return this.known !== null && this.#own !== null;
  }

  /** The ops that have a color, the largest first. */
  get colored() {
    const { ops = [] } = this.isByBuffer ? {} : this.known?.buffers ?? {};
    return ops.map((op, code) => ({ op, name: this.#colors[code] ?? REST }))
      .filter(({ name }) => name !== REST);
  }

  /** @param {Frame} frame */
  paint(frame) {
    const answer = this.known, layout = this.#layout;
    if (!answer || !layout) return;
    const { context, colors, left, right, top, bottom } = frame;
    context.save();
    context.beginPath();
    context.rect(left, top - 2, right - left, bottom - top + 3);
    context.clip();
    const xAt = this.#xAt(frame, answer);
    this.#ground(frame, answer, layout.top, xAt);
    const ground = color(colors, "panel"), { buffers } = answer;
    for (let piece = 0; piece < layout.y.length; piece++) {
      const buffer = layout.buffer[piece] ?? 0, y = layout.y[piece] ?? 0;
      const over = yOf(frame, y + (buffers.bytes[buffer] ?? 0)), height = yOf(frame, y) - over;
      if (height < LEAST_PX || over > bottom || over + height < top) continue;
      const x = xAt(layout.from[piece] ?? 0), width = xAt(layout.to[piece] ?? 0) - x;
      context.fillStyle = color(colors,
        (this.#own ? this.#own[buffer] : this.#colors[buffers.op[buffer] ?? 0]) ?? REST);
      context.fillRect(x, over, width, height);
      if (height >= BORDER_PX) {
        context.fillStyle = ground;
        context.fillRect(x, over, width, 0.75);
      }
    }
    const chosen = this.model.state.buffer;
    const marks = [[this.model.pointed?.record ?? null, 1.5], [chosen, 2.5]];
    for (const [record, wide = 1] of marks) {
      const place = typeof record === "number" ? buffers.record.indexOf(record) : -1;
      if (place >= 0) this.#outline(frame, xAt, place, color(colors, "text"), wide ?? 1);
    }
    context.restore();
  }

  /**
   * @param {Frame} frame
   * @param {Answer} answer
   */
  #xAt({ viewport, left, right }, { start_ps: start, end_ps: end, width }) {
    return (/** @type {number} */ pixel) =>
      left + viewport.x(start + (pixel * (end - start)) / width, right - left);
  }

  /**
   * What lies below all, the buffers as one, the smaller ones, and what no buffer explains.
   * @param {Frame} frame
   * @param {Answer} answer
   * @param {Float64Array} top
   * @param {(pixel: number) => number} xAt
   */
  #ground(frame, answer, top, xAt) {
    const { context, colors } = frame;
    answer.used.forEach((used, pixel) => {
      if (used === null) return;
      const x = xAt(pixel), width = xAt(pixel + 1) - x;
      const strip = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ name) => {
        if (to <= from) return;
        context.fillStyle = color(colors, name);
        const y = yOf(frame, to);
        context.fillRect(x, y, width + 0.3, yOf(frame, from) - y);
      };
      const below = answer.below[pixel] ?? 0, over = top[pixel] ?? 0;
      const smaller = over + (answer.smaller[pixel] ?? 0);
      strip(0, below, "series-11");
      strip(below, smaller, REST);
      strip(smaller, smaller + Math.max(answer.unattributed[pixel] ?? 0, 0), "quiet");
    });
  }

  /**
   * @param {Frame} frame
   * @param {(pixel: number) => number} xAt
   * @param {number} buffer
   * @param {string} stroke
   * @param {number} width
   */
  #outline(frame, xAt, buffer, stroke, width) {
    const layout = this.#layout, size = this.answer?.buffers.bytes[buffer] ?? 0;
    if (!layout) return;
    const { context } = frame, path = new Path2D();
    /** @type {[number, number][]} */
    const under = [];
    layout.buffer.forEach((one, piece) => {
      if (one !== buffer) return;
      const y = layout.y[piece] ?? 0, from = xAt(layout.from[piece] ?? 0), to = xAt(layout.to[piece] ?? 0);
      if (under.length) path.lineTo(from, yOf(frame, y + size));
      else path.moveTo(from, yOf(frame, y + size));
      path.lineTo(to, yOf(frame, y + size));
      under.push([from, yOf(frame, y)], [to, yOf(frame, y)]);
    });
    for (const [x, y] of under.reverse()) path.lineTo(x, y);
    path.closePath();
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.stroke(path);
    context.lineWidth = 1;
  }

  /**
   * What is at a place: the texts of its tip, its moment, and the buffer's record.
   * @param {number} at ps
   * @param {number} value bytes
   * @returns {{lines: string[], moment: number | null, place: number, record: number | null} | null}
   */
  at(at, value) {
    const answer = this.known;
    if (!answer || at < answer.start_ps || at >= answer.end_ps) return null;
    const pixel = Math.floor(((at - answer.start_ps) * answer.width) / (answer.end_ps - answer.start_ps));
    const moment = answer.at_ps[pixel] ?? null;
    if (moment === null) return null;
    const { buffers } = answer;
    let y = answer.below[pixel] ?? 0;
    const nothing = (/** @type {string} */ text, /** @type {number} */ size) =>
      ({ lines: [text, `${bytes(size)} at ${time(moment, 7)}`], moment, place: -1, record: null });
    if (value < y) return nothing(WORDING.polygons.below, y);
    for (let one = 0; one < buffers.record.length; one++) {
      if ((buffers.first[one] ?? 0) > pixel || (buffers.last[one] ?? 0) <= pixel) continue;
      y += buffers.bytes[one] ?? 0;
      if (value >= y) continue;
      const start = buffers.start_ps[one] ?? null, end = buffers.end_ps[one] ?? null;
      return { moment, place: one, record: buffers.record[one] ?? null, lines: [
        buffers.ops[buffers.op[one] ?? 0] || "(no op)", bytes(buffers.bytes[one]),
        `${start === null ? WORDING.memory.from_before : `allocated at ${time(start, 7)}`}, `
          + `${end === null ? WORDING.memory.not_freed : `freed at ${time(end, 7)}`}`,
        ...(start !== null && end !== null ? [`lives for ${time(end - start)}`] : []),
        "Click: choose it",
      ] };
    }
    const smaller = answer.smaller[pixel] ?? 0;
    if (value < y + smaller) return nothing(worded(WORDING.polygons.in_view, { buffers: count(answer.others) }), smaller);
    const rest = answer.unattributed[pixel] ?? 0;
    return value < y + smaller + rest ? nothing("unattributed", rest) : null;
  }
}
