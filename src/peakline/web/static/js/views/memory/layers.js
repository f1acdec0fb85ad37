/** Memory in use as layers: what every pixel is made of at its highest moment, and at its lowest. */

import { CATEGORIES, REST } from "../../core/colors.js";
import { bytes, percent, time } from "../../core/format.js";
import { color, yOf } from "./frame.js";
import { WORDING } from "../../core/wording.js";

/** How much of its color has what is only there at a pixel's highest moment. */
const PALE = 0.55;
const MOST_PIXELS = 4096;

/** @typedef {import("./frame.js").Frame} Frame */
/**
 * @typedef {object} Layer
 * @property {string} kind group, rest, before, reserved, rounding or unattributed
 * @property {string} key
 * @property {number} number of its group; -1
 * @property {number} groups that it stands for
 * @property {number} top_bytes
 */
/**
 * @typedef {object} Moments
 * @property {(number | null)[]} at_ps
 * @property {(number | null)[]} used
 * @property {(number | null)[][]} layers
 */
/**
 * The answer of `memory_stack`; docs/memory-over-time.md has every field.
 * @typedef {object} Stacked
 * @property {string} allocator
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} width
 * @property {number | null} top_ps
 * @property {Layer[]} layers
 * @property {Moments} high
 * @property {Moments} low
 * @property {number[] | null} reserved
 * @property {string[] | null} program_events the names of events that say of which program buffers are
 */

/** What layers of no group are called, and their colors of the stylesheet. */
const OTHERS = /** @type {Record<string, [string, string]>} */ ({
  rest: ["all others", REST], before: ["before the profile", "series-11"],
  reserved: [WORDING.memory.reserved, "line"], rounding: ["rounded up", "warn"],
  unattributed: ["unattributed", "quiet"],
});

export class Layers {
  /** @type {Stacked | null} */
  answer = null;
  #query = "";
  /** The place of each group's color, so that it stays while one zooms. @type {Map<string, number>} */
  #slots = new Map();

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
    const { viewport, allocator, state } = this.model;
    if (!allocator) return null;
    const query = {
      allocator: allocator.name, group: state.by, size: state.requested ? "requested" : "allocated",
      start_ps: viewport.from, end_ps: viewport.to, width: Math.min(pixels, MOST_PIXELS),
    };
    return JSON.stringify(query) === this.#query ? null : query;
  }

  /** @param {Record<string, string | number>} query */
  async ask(query) {
    const { data } = await this.context.tool("memory_stack", query);
    this.#query = JSON.stringify(query);
    const before = this.answer;
    this.answer = data;
    this.group = String(query["group"]);
    if (before?.allocator !== data.allocator || this.#grouped !== query["group"]) this.#slots.clear();
    this.#grouped = query["group"];
    this.#give(data);
    this.found();
  }

  /** @type {unknown} */
  #grouped = null;

  /** Colors for groups: the one that each had, else the first that is free. @param {Stacked} data */
  #give({ layers }) {
    const shown = new Set(layers.map(idOf));
    const taken = new Set([...this.#slots].filter(([id]) => shown.has(id)).map(([, slot]) => slot));
    const free = CATEGORIES.map((_, slot) => slot).filter((slot) => !taken.has(slot));
    for (const layer of layers) {
      const id = idOf(layer);
      if (layer.kind !== "group" || this.#slots.has(id)) continue;
      this.#slots.set(id, free.shift() ?? 0);
    }
    for (const id of this.#slots.keys()) if (!shown.has(id)) this.#slots.delete(id);
  }

  /** The name of a layer's color in the stylesheet. @param {Layer} layer */
  colorName(layer) {
    if (layer.kind !== "group") return OTHERS[layer.kind]?.[1] ?? REST;
    return CATEGORIES[this.#slots.get(idOf(layer)) ?? 0] ?? REST;
  }

  /** @param {Layer} layer */
  isOff(layer) {
    return this.model.state.off.includes(idOf(layer));
  }

  /** The answer, where it is of what is chosen now. */
  get known() {
    const { answer, model } = this;
    return answer && answer.allocator === model.allocator?.name && this.group === model.state.by
      ? answer : null;
  }

  /** @param {Frame} frame */
  paint(frame) {
    const { known } = this;
    if (!known) return;
    const { context, left, right, top, bottom } = frame;
    context.save();
    context.beginPath();
    context.rect(left, top - 2, right - left, bottom - top + 3);
    context.clip();
    context.globalAlpha = PALE;
    this.#stack(frame, known, known.high);
    context.globalAlpha = 1;
    this.#stack(frame, known, known.low);
    context.restore();
  }

  /**
   * @param {Frame} frame
   * @param {Stacked} answer
   * @param {Moments} moments
   */
  #stack(frame, answer, moments) {
    const { context, viewport, left, right } = frame, { width, start_ps: start, end_ps: end } = answer;
    const { model } = this;
    const span = end - start;
    const xAt = (/** @type {number} */ pixel) =>
      left + viewport.x(start + (pixel * span) / width, right - left);
    const first = moments.used.findIndex((value) => value !== null);
    if (first < 0) return;
    const floor = new Float64Array(width);
    answer.layers.forEach((layer, place) => {
      if (this.isOff(layer)) return;
      const values = moments.layers[place] ?? [];
      const path = new Path2D();
      path.moveTo(xAt(first), yOf(frame, floor[first] ?? 0));
      /** @type {[number, number][]} */
      const back = [];
      for (let pixel = first; pixel < width; pixel++) {
        const under = floor[pixel] ?? 0, over = under + Math.max(values[pixel] ?? 0, 0);
        const x = xAt(pixel), next = xAt(pixel + 1);
        path.lineTo(x, yOf(frame, over));
        path.lineTo(next, yOf(frame, over));
        back.push([x, yOf(frame, under)], [next, yOf(frame, under)]);
        floor[pixel] = over;
      }
      for (let n = back.length - 1; n >= 0; n -= 2) {
        path.lineTo(...(back[n] ?? [0, 0]));
        path.lineTo(...(back[n - 1] ?? [0, 0]));
      }
      path.closePath();
      context.fillStyle = color(frame.colors, this.colorName(layer));
      context.fill(path);
      if (layer.kind === "group" && model.pointed?.texts[model.state.by] === layer.key) {
        context.strokeStyle = color(frame.colors, "text");
        context.lineWidth = 1.5;
        context.stroke(path);
      }
    });
  }

  /**
   * What is at a place: the texts of its tip, and the moment that it shows.
   * @param {number} at ps
   * @param {number} value bytes
   * @returns {{lines: string[], moment: number | null, layer: Layer | null} | null}
   */
  at(at, value) {
    const answer = this.known;
    if (!answer || at < answer.start_ps || at >= answer.end_ps) return null;
    const pixel = Math.floor(((at - answer.start_ps) * answer.width) / (answer.end_ps - answer.start_ps));
    const used = answer.high.used[pixel];
    if (used === null || used === undefined) return null;
    const lowUsed = answer.low.used[pixel] ?? used;
    let sum = 0;
    const side = value <= lowUsed ? answer.low : answer.high;
    for (const [place, layer] of answer.layers.entries()) {
      if (this.isOff(layer)) continue;
      const size = Math.max(side.layers[place]?.[pixel] ?? 0, 0);
      if (value < sum + size) {
        return { layer, moment: side.at_ps[pixel] ?? null, lines: [
          nameOf(layer), `${bytes(size)}, ${percent(used ? size / (side.used[pixel] ?? used) : 0)} of `
            + `${bytes(side.used[pixel])} at ${time(side.at_ps[pixel], 7)}`,
          side === answer.low ? WORDING.chart.lowest : WORDING.chart.highest,
        ] };
      }
      sum += size;
    }
    return null;
  }
}

/** What the address and the legend know a layer by. @param {Layer} layer */
export function idOf({ kind, number }) {
  return kind === "group" ? String(number) : kind;
}

/** @param {Layer} layer */
export function nameOf({ kind, key, groups }) {
  if (kind === "group") return key || "(not recorded)";
  const name = OTHERS[kind]?.[0] ?? kind;
  return kind === "rest" ? `${name} (${groups.toLocaleString("en-US")})` : name;
}
