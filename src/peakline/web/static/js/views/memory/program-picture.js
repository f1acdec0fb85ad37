/** Layers of a program's memory over its schedule, drawn and found again under the pointer. */

import { byteMarks } from "../../core/axis.js";
import { CATEGORIES, REST } from "../../core/colors.js";
import { bytes, count } from "../../core/format.js";
import { FONT, color, crisp, line } from "./frame.js";

const LEFT = 84, RIGHT = 14, TOP = 12, AXIS = 24, MARK_PX = 48;

/** @typedef {{kind: string, key: string, groups: number, peak_bytes: number}} ProgramLayer */
/**
 * The answer of `program_memory`; docs/memory-over-time.md has every field.
 * @typedef {object} ProgramAnswer
 * @property {{name: string, peak_bytes: number | null}[]} programs
 * @property {string | null} program
 * @property {string | null} reason
 * @property {number | null} peak_bytes
 * @property {string | null} found_by
 * @property {number} instructions
 * @property {number} peak
 * @property {number[]} place
 * @property {number[]} live_bytes
 * @property {ProgramLayer[]} layers
 * @property {number[][]} bytes
 * @property {Record<string, any[]>} tree
 * @property {any[]} rows
 * @property {number} rows_total
 */

/** What a layer is called. @param {ProgramLayer} layer */
export function valueLayer({ kind, key, groups }) {
  return kind === "group" ? key : `${count(groups)} smaller`;
}

/** The name of a layer's color in the stylesheet. @param {ProgramLayer} layer @param {number} place */
export function colorOfLayer({ kind }, place) {
  return kind === "group" ? CATEGORIES[place % CATEGORIES.length] ?? REST : REST;
}

/**
 * The color of every part of the tree: that of the layer that it is in, grey where its layer is that
 * of all smaller groups, and where it holds several.
 * @param {ProgramAnswer} data
 * @param {string} by
 */
export function colorsOfTree({ layers, tree }, by) {
  const { id = [], label = [], parent = [] } = tree;
  const places = new Map(id.map((one, place) => [one, place]));
  const above = parent.map((one) => places.get(one) ?? -1);
  const has = new Set(above), ops = new Set(above.filter((_, place) => !has.has(place)));
  const known = new Map(layers.map((layer, place) => [layer.kind === "group" ? layer.key : null,
    colorOfLayer(layer, place)]));
  const paths = /** @type {string[]} */ ([]), colors = /** @type {string[]} */ ([]);
  id.forEach((_, place) => {
    const around = above[place] ?? -1;
    paths[place] = by === "scope" && around > 0 ? `${paths[around]}/${label[place]}` : String(label[place]);
    // An op and its instructions are in the scope around them, an instruction in what it is listed under.
    const inherits = around >= 0 && (!has.has(place) || (by === "scope" && ops.has(place)));
    colors[place] = (place > 0 ? known.get(paths[place] ?? "") : undefined)
      ?? (inherits ? colors[around] : undefined) ?? REST;
  });
  return colors;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 * @param {ProgramAnswer} data
 * @param {number} width
 * @param {number} height
 * @param {{start: number | null, end: number | null, instruction: string} | null} marked
 */
export function paintProgram(context, colors, data, width, height, marked) {
  if (!data.layers.length) return;
  const { place, live_bytes: live, layers } = data;
  const right = width - RIGHT, bottom = height - AXIS, most = Math.max(...live, 1) * 1.08;
  const xAt = (/** @type {number} */ at) => LEFT + (at / Math.max(data.instructions, 1)) * (right - LEFT);
  const yAt = (/** @type {number} */ value) => bottom - (value / most) * (bottom - TOP);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.strokeStyle = color(colors, "line");
  for (const mark of byteMarks(most, Math.max(2, Math.floor((bottom - TOP) / MARK_PX)))) {
    line(context, LEFT, crisp(yAt(mark)), right, crisp(yAt(mark)));
    context.fillStyle = color(colors, "quiet");
    context.fillText(bytes(mark), LEFT - 8, yAt(mark));
  }
  const under = new Float64Array(place.length);
  layers.forEach((layer, number) => {
    context.fillStyle = color(colors, colorOfLayer(layer, number));
    place.forEach((at, n) => {
      const size = data.bytes[number]?.[n] ?? 0, base = under[n] ?? 0;
      if (!size) return;
      // A place lasts until the next one that is drawn.
      const from = Math.round(n ? xAt(at) : LEFT), to = Math.round(xAt(place[n + 1] ?? data.instructions));
      context.fillRect(from, yAt(base + size), Math.max(to - from, 1), yAt(base) - yAt(base + size));
      under[n] = base + size;
    });
  });
  context.fillStyle = color(colors, "quiet");
  context.textAlign = "left";
  context.fillText("first instruction", LEFT, bottom + 12);
  context.textAlign = "right";
  context.fillText(`last of ${count(data.instructions)}`, right, bottom + 12);
  if (data.peak >= 0) {
    const x = crisp(xAt(data.peak));
    context.strokeStyle = color(colors, "accent");
    context.setLineDash([4, 3]);
    line(context, x, TOP, x, bottom);
    context.setLineDash([]);
    context.fillStyle = color(colors, "text");
    const isLeft = x > (LEFT + right) / 2;
    context.textAlign = isLeft ? "right" : "left";
    context.fillText(`peak ${bytes(data.peak_bytes)}`, x + (isLeft ? -6 : 6), TOP + 2);
  }
  if (marked?.start !== null && marked?.start !== undefined) {
    const from = xAt(marked.start), to = xAt((marked.end ?? data.instructions) + 1);
    context.strokeStyle = context.fillStyle = color(colors, "text");
    context.lineWidth = 2;
    context.strokeRect(from, TOP, Math.max(to - from, 2), bottom - TOP);
    context.lineWidth = 1;
  }
}

/**
 * The place and the layer at a point of the picture; -1 for none of the layers.
 * @param {ProgramAnswer} data
 * @param {number} width
 * @param {number} height
 * @param {number} x
 * @param {number} y
 */
export function placeAt(data, width, height, x, y) {
  const right = width - RIGHT, bottom = height - AXIS;
  if (!data.layers.length || x < LEFT || x > right || y > bottom) return null;
  const wanted = ((x - LEFT) / (right - LEFT)) * data.instructions;
  let at = data.place.findIndex((one) => one > wanted);
  at = Math.max((at < 0 ? data.place.length : at) - 1, 0);
  const most = Math.max(...data.live_bytes, 1) * 1.08;
  const value = ((bottom - y) / Math.max(bottom - TOP, 1)) * most;
  let under = 0;
  for (const [layer, sizes] of data.bytes.entries()) {
    under += sizes[at] ?? 0;
    if (value < under) return { at, layer };
  }
  return { at, layer: -1 };
}
