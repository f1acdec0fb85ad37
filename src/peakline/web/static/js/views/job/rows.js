/**
 * Ranks under each other, as many as there are: a canvas that scrolls, of which only the rows in view
 * are drawn. Above it an axis, at the left who is in which row.
 */

import { Surface } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { palette } from "../../core/theme.js";
import { cutMiddle } from "../steps/labels.js";

/** @typedef {import("./order.js").Order} Order */
/**
 * @typedef {object} Area where the rows are, in CSS pixels of the canvas
 * @property {number} left
 * @property {number} top
 * @property {number} width
 * @property {number} height
 */
/**
 * @typedef {object} Drawing
 * @property {(paint: CanvasRenderingContext2D, area: Area) => void} draw
 * @property {(paint: CanvasRenderingContext2D, area: Area) => void} axis
 * @property {(rank: number) => string} title
 * @property {(rank: number) => boolean} isMarked whose name is always there, and stands out
 */

const AXIS_PX = 22, HEAD_PX = 20, RIGHT_PX = 10, LABEL_PX = 110, NARROW_PX = 72, LETTER_PX = 6.6;
const NARROW = 600, LABELS_APART_PX = 13, FONT = "12px system-ui, sans-serif";
const WISHED_PX = 480, LEAST_PX = 6, MOST_PX = 24, SMALLEST_PX = 0.5;

export class Rows {
  /** @type {Order} */
  order = { ranks: new Int32Array(0), heads: [] };
  rowPx = MOST_PX;
  /** Where each row begins, without the axis. */
  #tops = new Float64Array(0);
  #total = 0;
  /** The place of each rank in the order. */
  #places = new Int32Array(0);
  /** How high a row is, where the reader chose it. @type {number | null} */
  #chosen = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Drawing} drawing
   */
  constructor(canvas, drawing) {
    this.canvas = canvas;
    this.drawing = drawing;
    this.space = h("div", { class: "rows-space" }, canvas);
    this.element = h("div", { class: "rows-picture" }, this.space);
    this.surface = new Surface(canvas, (paint, width, height) => this.#paint(paint, width, height));
    this.element.addEventListener("scroll", () => this.surface.redraw());
    this.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientY - canvas.getBoundingClientRect().top);
    }, { passive: false });
  }

  /** @param {Order} order */
  setOrder(order) {
    this.order = order;
    this.#places = new Int32Array(order.ranks.length);
    order.ranks.forEach((rank, place) => { this.#places[rank] = place; });
    this.#arrange();
  }

  /**
   * @param {number} factor of the height of a row
   * @param {number} [y] of the canvas: what is there stays there
   */
  zoom(factor, y = AXIS_PX) {
    const { scrollTop } = this.element, at = scrollTop + y - AXIS_PX, before = this.#total;
    this.#chosen = Math.max(SMALLEST_PX, Math.min(MOST_PX, this.rowPx * factor));
    this.#arrange();
    this.element.scrollTop = before ? (at * this.#total) / before - (y - AXIS_PX) : 0;
  }

  destroy() {
    this.surface.destroy();
  }

  #arrange() {
    const { ranks, heads } = this.order;
    this.rowPx = this.#chosen
      ?? Math.max(LEAST_PX, Math.min(MOST_PX, Math.floor(WISHED_PX / Math.max(ranks.length, 1))));
    this.#tops = new Float64Array(ranks.length);
    let y = 0, next = 0;
    for (let place = 0; place < ranks.length; place++) {
      if (heads[next]?.place === place) {
        y += HEAD_PX;
        next += 1;
      }
      this.#tops[place] = y;
      y += this.rowPx;
    }
    this.#total = y;
    const whole = Math.ceil(y + AXIS_PX);
    this.space.style.height = `${whole}px`;
    this.canvas.style.height = `min(${whole}px, var(--rows-most))`;
    this.surface.redraw();
  }

  get left() {
    return this.surface.width < NARROW ? NARROW_PX : LABEL_PX;
  }

  /** @returns {Area} */
  get area() {
    const { width, height } = this.surface, { left } = this;
    return { left, top: AXIS_PX, width: Math.max(width - left - RIGHT_PX, 1),
      height: Math.max(height - AXIS_PX, 1) };
  }

  /** The rows in view: from the first to before the last. @returns {[number, number]} */
  get seen() {
    const from = this.element.scrollTop, until = from + this.area.height;
    return [Math.max(0, this.#search(from - this.rowPx)), this.#search(until)];
  }

  /** Where a row begins on the canvas. @param {number} place */
  y(place) {
    return AXIS_PX + (this.#tops[place] ?? 0) - this.element.scrollTop;
  }

  /** The place of the row of a rank. @param {number} rank */
  placeOf(rank) {
    return this.#places[rank] ?? -1;
  }

  /** The place of the row at a height of the canvas; -1 at none. @param {number} y */
  placeAt(y) {
    if (y < AXIS_PX) return -1;
    const at = y - AXIS_PX + this.element.scrollTop;
    const place = this.#search(at + 1e-9) - 1;
    return place >= 0 && at < (this.#tops[place] ?? 0) + this.rowPx ? place : -1;
  }

  /** Bring a row into view. @param {number} place */
  reveal(place) {
    const top = this.#tops[place] ?? 0, { height } = this.area, { scrollTop } = this.element;
    if (top < scrollTop + HEAD_PX) this.element.scrollTop = top - HEAD_PX;
    else if (top + this.rowPx > scrollTop + height) this.element.scrollTop = top + this.rowPx - height;
    this.surface.redraw();
  }

  /** How many rows begin before a height. @param {number} y */
  #search(y) {
    let low = 0, high = this.#tops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#tops[middle] ?? 0) < y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {number} width
   * @param {number} height
   */
  #paint(paint, width, height) {
    if (!this.order.ranks.length) return;
    const colors = palette(), { area } = this;
    paint.save();
    paint.beginPath();
    paint.rect(0, AXIS_PX, width, height - AXIS_PX);
    paint.clip();
    this.drawing.draw(paint, area);
    this.#labels(paint, colors);
    paint.restore();
    paint.font = FONT;
    paint.fillStyle = colors["quiet"] ?? "";
    paint.textBaseline = "middle";
    this.drawing.axis(paint, { ...area, top: 0, height: AXIS_PX });
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   */
  #labels(paint, colors) {
    const { ranks, heads } = this.order, [first, last] = this.seen, { left } = this;
    const middle = Math.max(this.rowPx, LABELS_APART_PX) / 2;
    paint.textBaseline = "middle";
    paint.textAlign = "right";
    /** @type {number[]} */
    const there = [];
    const write = (/** @type {number} */ place, /** @type {number} */ y) => {
      const text = cutMiddle(this.drawing.title(ranks[place] ?? 0), (left - 10) / LETTER_PX);
      paint.fillText(text, left - 8, y + middle);
    };
    paint.font = `600 ${FONT}`;
    paint.fillStyle = colors["bad"] ?? "";
    for (let place = first; place < last; place++) {
      if (!this.drawing.isMarked(ranks[place] ?? 0)) continue;
      const y = Math.max(this.y(place), (there.at(-1) ?? -Infinity) + LABELS_APART_PX);
      there.push(y);
      write(place, y);
    }
    paint.font = FONT;
    paint.fillStyle = colors["text"] ?? "";
    const begins = new Set(heads.map(({ place }) => place));
    let before = -Infinity, next = 0;
    for (let place = first; place < last; place++) {
      const y = this.y(place);
      // A group begins with a label of its own.
      if (begins.has(place)) before = -Infinity;
      if (y - before < LABELS_APART_PX) continue;
      while ((there[next] ?? Infinity) <= y - LABELS_APART_PX) next += 1;
      if (Math.abs((there[next] ?? Infinity) - y) < LABELS_APART_PX) continue;
      write(place, y);
      before = y;
    }
    paint.textAlign = "left";
    paint.font = `600 ${FONT}`;
    for (const { head, place } of heads) {
      if (place < first || place > last) continue;
      paint.fillStyle = colors["text"] ?? "";
      paint.fillText(cutMiddle(head, this.surface.width / LETTER_PX), 4, this.y(place) - HEAD_PX / 2 + 1);
    }
  }
}
