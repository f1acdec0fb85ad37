/** Curves of several sessions over one another, and below how much they differ from the first. */

import { byteMarks, timeMarks } from "../../core/axis.js";
import { Surface } from "../../core/canvas.js";
import { categoryColor } from "../../core/colors.js";
import { announce, h } from "../../core/dom.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { signed } from "./changes.js";

const LEFT = 74, RIGHT = 12, TOP = 8, FOOT = 20, GAP = 18;
/** The share of the height that the difference takes. */
const BELOW = 0.34;
const LABEL_PX = 90;

/** @typedef {import("./series.js").Model} Model */

export class StepChart {
  /** @type {number | null} */
  #at = null;

  /**
   * @param {Model} model
   * @param {"bytes" | "time"} kind
   * @param {import("./changes.js").Format} format
   * @param {string} label
   */
  constructor(model, kind, format, label) {
    this.model = model;
    this.kind = kind;
    this.format = format;
    this.canvas = h("canvas", { class: "step-chart", role: "img", tabindex: 0, "aria-label": label });
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#draw(context, width, height));
    this.canvas.addEventListener("pointermove", (event) => {
      this.#at = this.#placeAt(event.offsetX);
      this.surface.redraw();
      showTip(event.clientX, event.clientY, this.#lines());
    });
    this.canvas.addEventListener("pointerleave", () => this.#leave());
    this.canvas.addEventListener("blur", () => this.#leave());
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  destroy() {
    hideTip();
    this.surface.destroy();
  }

  #leave() {
    this.#at = null;
    hideTip();
    this.surface.redraw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.model.at.length - 1, at = this.#at ?? -1;
    /** @type {Record<string, number>} */
    const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    const place = places[event.key];
    if (place === undefined) return;
    this.#at = Math.max(0, Math.min(place, last));
    event.preventDefault();
    event.stopPropagation();
    this.surface.redraw();
    announce(this.#lines().join(", "));
  }

  /** What is to be said of where the pointer is. */
  #lines() {
    const { at, lines, differences } = this.model, place = this.#at ?? 0;
    const less = differences.length > 1 ? (/** @type {string} */ title) => `${title} less Before`
      : () => "Difference";
    return [at[place] ?? "", ...lines.map(({ title, value }) =>
      `${title}: ${shown(value[place], this.format)}`), ...differences.flatMap(({ title, value }) =>
      (typeof value[place] === "number"
        ? [`${less(title)}: ${signed(value[place] ?? 0, this.format)}`] : []))];
  }

  /** @param {number} x */
  #placeAt(x) {
    const wide = Math.max(this.surface.width - LEFT - RIGHT, 1), many = this.model.at.length;
    return Math.max(0, Math.min(many - 1, Math.floor(((x - LEFT) / wide) * many)));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const { lines, differences, at } = this.model, colors = palette();
    const right = width - RIGHT, bottom = height - FOOT;
    const middle = differences.length ? TOP + (bottom - TOP) * (1 - BELOW) : bottom;
    const wide = (right - LEFT) / at.length;
    const top = Math.max(...lines.flatMap(({ high }) => high.map((one) => one ?? 0)), 1) * 1.05;
    const y = scale(0, top, middle - (differences.length ? GAP / 2 : 0), TOP);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const marks = this.kind === "bytes" ? byteMarks(top, 4).map((value) => [value, this.format(value)])
      : timeMarks(0, top, 3 * (middle - TOP)).map((mark) => [mark.time, mark.text]);
    for (const [value, text] of /** @type {[number, string][]} */ (marks)) {
      this.#mark(context, y(value), text, right);
    }
    for (const line of lines) {
      context.fillStyle = categoryColor(line.place);
      context.globalAlpha = 0.16;
      line.high.forEach((high, place) => {
        const low = line.low[place];
        if (high === null || low === null || low === undefined) return;
        context.fillRect(LEFT + place * wide, y(high), wide + 0.4, Math.max(y(low) - y(high), 1));
      });
      context.globalAlpha = 1;
    }
    for (const { place, value } of lines) stroke(context, value, y, wide, categoryColor(place));
    if (differences.length) {
      const values = differences.flatMap(({ value }) => value.map((one) => one ?? 0));
      const most = Math.max(...values, 0), least = Math.min(...values, 0);
      const under = scale(least, most === least ? least + 1 : most, bottom - 4, middle + GAP / 2);
      for (const value of new Set([least, 0, most])) {
        const isNear = value && Math.abs(under(value) - under(0)) < 14;
        if (!isNear) this.#mark(context, under(value), signed(value, this.format), right, !value);
      }
      for (const { place, value } of differences) {
        stroke(context, value, under, wide, categoryColor(place));
      }
    }
    this.#foot(context, right, bottom);
    if (this.#at !== null) {
      context.fillStyle = colors["focus"] ?? "";
      context.fillRect(LEFT + (this.#at + 0.5) * wide, TOP, 1, bottom - TOP);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} y
   * @param {string} text
   * @param {number} right
   * @param {boolean} [isStrong]
   */
  #mark(context, y, text, right, isStrong = false) {
    const colors = palette();
    context.fillStyle = colors[isStrong ? "quiet" : "line"] ?? "";
    context.fillRect(LEFT, Math.round(y), right - LEFT, 1);
    context.fillStyle = colors["quiet"] ?? "";
    context.textAlign = "right";
    context.fillText(text, LEFT - 6, y);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} right
   * @param {number} bottom
   */
  #foot(context, right, bottom) {
    const { at } = this.model, many = Math.max(1, Math.floor((right - LEFT) / LABEL_PX));
    const each = Math.max(1, Math.ceil(at.length / many));
    context.fillStyle = palette()["quiet"] ?? "";
    for (let place = 0; place < at.length; place += each) {
      const x = LEFT + ((place + 0.5) / at.length) * (right - LEFT), text = at[place] ?? "";
      const half = context.measureText(text).width / 2;
      context.textAlign = "left";
      context.fillText(text, Math.min(Math.max(x - half, LEFT), right - 2 * half), bottom + FOOT / 2 + 2);
    }
  }
}

/**
 * @param {number | null | undefined} value
 * @param {import("./changes.js").Format} format
 */
function shown(value, format) {
  return typeof value === "number" ? format(value) : "ended";
}

/**
 * @param {number} least
 * @param {number} most
 * @param {number} bottom
 * @param {number} top
 */
function scale(least, most, bottom, top) {
  return (/** @type {number} */ value) => bottom - ((value - least) / (most - least)) * (bottom - top);
}

/**
 * A value for each position, as long as the position is wide where there are few.
 * @param {CanvasRenderingContext2D} context
 * @param {(number | null)[]} values
 * @param {(value: number) => number} y
 * @param {number} wide
 * @param {string} color
 */
function stroke(context, values, y, wide, color) {
  context.strokeStyle = color;
  context.lineWidth = 1.75;
  context.beginPath();
  let isOn = false;
  values.forEach((value, place) => {
    if (value === null) {
      isOn = false;
      return;
    }
    const x = LEFT + (place + 0.5) * wide;
    if (isOn) context.lineTo(x, y(value));
    else context.moveTo(x - (values.length === 1 ? wide / 2 : 0), y(value));
    if (values.length === 1) context.lineTo(x + wide / 2, y(value));
    isOn = true;
  });
  context.stroke();
}
