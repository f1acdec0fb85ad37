/** The chart of steps: a bar each, stacked by what its time went to, on a canvas. */

import { h } from "../../core/dom.js";
import { shares, time } from "../../core/format.js";
import { attachGestures, moveByKey } from "../../core/gestures.js";
import { timeMarks } from "../../core/axis.js";
import { PARTS } from "../../core/parts.js";
import { onTheme, palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { Viewport } from "../../core/viewport.js";
import { patternOf } from "./pattern.js";

const LEFT = 78, TOP = 20, BOTTOM = 24, RIGHT = 8, HEIGHT = 260;
/** The viewport's unit: a step is this wide. */
const STEP = 1000;
const LABEL_PX = 90, LETTER_PX = 8;
/** Hatching shows on bars that are at least so wide. */
const PATTERN_PX = 3;
/** What the record does not hold whole is drawn so pale. */
const CUT_OFF = 0.4;
/** So many names of steps have a line of their median. */
const MEDIANS = 4;

/** @typedef {import("./facts.js").Step} Step */
/** @typedef {{name: string, median_ps: number}} Median of the steps of one name */

export class StepChart {
  /** @type {Step[]} */
  #rows = [];
  /** @type {Set<number>} */
  #slow = new Set();
  /** @type {Median[]} */
  #medians = [];
  #chosen = -1;
  #drawn = 0;
  /** @type {(() => void)[]} */
  #ends = [];

  /** @param {{choose: (step: Step) => void, zoom: (range: string | null) => void}} actions */
  constructor(actions) {
    this.actions = actions;
    this.viewport = new Viewport(0, STEP);
    this.canvas = h("canvas", { tabindex: 0, role: "application", class: "step-chart" });
    this.element = h("div", { class: "canvas-box" }, this.canvas);
    const resize = new ResizeObserver(() => this.draw());
    resize.observe(this.element);
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    // A wheel alone scrolls the page, on which the chart is only a part.
    this.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) event.stopPropagation();
    }, { capture: true, passive: true });
    this.#ends = [() => resize.disconnect(), onTheme(() => this.draw()), () => this.#detach()];
    this.#detach = this.#attach();
  }

  /** @type {() => void} */
  #detach;

  /**
   * @param {Step[]} rows in order of time
   * @param {Set<number>} slow ids of those that are much longer than others
   * @param {Median[]} medians those with most time first
   */
  setRows(rows, slow, medians) {
    this.#rows = rows;
    this.#slow = slow;
    this.#medians = medians.slice(0, MEDIANS);
    this.#detach();
    this.viewport = new Viewport(0, Math.max(rows.length, 1) * STEP);
    this.viewport.onChange(() => {
      this.actions.zoom(this.#range());
      this.draw();
    });
    this.#detach = this.#attach();
    const longest = rows.reduce((most, row) => Math.max(most, row.wall_ps), 0);
    this.canvas.setAttribute("aria-label", `Times of ${rows.length} steps, `
      + `${this.#medians.map((one) => this.#medianText(one)).join(", ")}, longest ${time(longest)}. Left and right choose a step; the table below has the numbers.`);
    this.draw();
  }

  /** Which steps are shown, as `first-last` by their places from 0; null: all. */
  #range() {
    const { from, to, isWhole } = this.viewport;
    return isWhole ? null : `${from / STEP}-${to / STEP}`;
  }

  /**
   * Show what `zoom` was told once.
   * @param {string} range empty: all
   */
  show(range) {
    const found = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(range);
    if (!found) this.viewport.showAll();
    else if (range !== this.#range()) {
      this.viewport.show(Number(found[1]) * STEP, Number(found[2]) * STEP);
    }
  }

  /**
   * Mark a step, or none (-1), and bring it into view.
   * @param {number} place among the rows
   */
  choose(place) {
    this.#chosen = place;
    const { from, to, span } = this.viewport;
    const begin = place * STEP;
    if (place >= 0 && (begin < from || begin + STEP > to)) {
      this.viewport.show(begin - span / 2, begin + span / 2);
    }
    this.draw();
  }

  draw() {
    if (this.#drawn) return;
    this.#drawn = requestAnimationFrame(() => {
      this.#drawn = 0;
      this.#paint();
    });
  }

  destroy() {
    cancelAnimationFrame(this.#drawn);
    for (const end of this.#ends) end();
    hideTip();
  }

  #attach() {
    return attachGestures(this.canvas, {
      viewport: this.viewport, left: () => LEFT, width: () => this.#width(),
      click: (x) => {
        const row = this.#rows[this.#placeAt(x)];
        if (row) this.actions.choose(row);
      },
      hover: (x, y) => this.#hover(x, y),
      leave: hideTip,
    });
  }

  #width() {
    return Math.max(this.element.clientWidth - LEFT - RIGHT, 1);
  }

  /** @param {number} x */
  #placeAt(x) {
    if (x < LEFT) return -1;
    const { longest } = this.#columns();
    const width = this.#width();
    if (longest) return longest[Math.min(Math.floor(x - LEFT), width - 1)] ?? -1;
    return Math.floor(this.viewport.time(x - LEFT, width) / STEP);
  }

  /**
   * What is drawn: every step, or where there are more than pixels the longest of each pixel.
   * @returns {{first: number, last: number, longest: number[] | null}}
   */
  #columns() {
    const first = Math.max(0, Math.floor(this.viewport.from / STEP));
    const last = Math.min(this.#rows.length, Math.ceil(this.viewport.to / STEP));
    const width = this.#width();
    if (last - first <= width) return { first, last, longest: null };
    const longest = new Array(Math.ceil(width)).fill(-1);
    for (let place = first; place < last; place++) {
      const x = Math.floor(this.viewport.x((place + 0.5) * STEP, width));
      const before = this.#rows[longest[x]]?.wall_ps ?? -1;
      if (x >= 0 && x < longest.length && wall(this.#rows[place]) > before) longest[x] = place;
    }
    return { first, last, longest };
  }

  #paint() {
    const ratio = devicePixelRatio || 1;
    const full = this.element.clientWidth;
    this.canvas.width = Math.round(full * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.canvas.style.width = `${full}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const paint = this.canvas.getContext("2d");
    if (!paint || !full) return;
    paint.scale(ratio, ratio);
    const colors = palette(), width = this.#width();
    const lines = colors["panel"] ?? "";
    const patterns = { "/": patternOf(paint, "/", lines), x: patternOf(paint, "x", lines) };
    const look = { colors, patterns };
    paint.font = "12px system-ui, sans-serif";
    const { first, last, longest } = this.#columns();
    const places = longest
      ? longest.filter((place) => place >= 0) : range(first, last);
    const top = Math.max(1, ...this.#medians.map(({ median_ps }) => median_ps),
      ...places.map((place) => wall(this.#rows[place]))) * 1.06;
    this.#paintAxis(paint, colors, top);
    const each = longest ? 1 : width / (this.viewport.span / STEP);
    const bar = longest ? 1 : Math.max(each - (each >= 5 ? Math.min(each * 0.15, 6) : 0), 1);
    paint.save();
    paint.beginPath();
    paint.rect(LEFT, 0, width, HEIGHT);
    paint.clip();
    const xOf = (/** @type {number} */ place, /** @type {number} */ pixel) => longest ? LEFT + pixel
      : LEFT + this.viewport.x(place * STEP, width) + (each - bar) / 2;
    if (longest) {
      longest.forEach((place, pixel) => place >= 0
        && this.#paintBar(paint, look, place, xOf(place, pixel), bar, top));
    } else {
      for (const place of places) this.#paintBar(paint, look, place, xOf(place, 0), bar, top);
    }
    if (this.#chosen >= 0) {
      const x = LEFT + this.viewport.x(this.#chosen * STEP, width);
      paint.strokeStyle = colors["text"] ?? "";
      paint.lineWidth = 2;
      paint.strokeRect(x + 1, TOP - 6, Math.max(each - 2, 2), HEIGHT - TOP - BOTTOM + 6);
    }
    paint.restore();
    this.#paintNames(paint, colors, range(first, last));
    this.#paintMedians(paint, colors, top);
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {{colors: Record<string, string>, patterns: Record<"/" | "x", CanvasPattern | string>}} look
   * @param {number} place
   * @param {number} x
   * @param {number} wide
   * @param {number} top
   */
  #paintBar(paint, { colors, patterns }, place, x, wide, top) {
    const row = /** @type {any} */ (this.#rows[place]);
    if (!row) return;
    const scale = (HEIGHT - TOP - BOTTOM) / top;
    let y = HEIGHT - BOTTOM;
    paint.globalAlpha = row.is_cut_off ? CUT_OFF : 1;
    for (const part of PARTS) {
      const tall = row[`${part.name}_ps`] * scale;
      if (!(tall > 0)) continue;
      y -= tall;
      paint.fillStyle = colors[part.color] ?? "";
      paint.fillRect(x, y, wide, tall);
      if (part.pattern && wide >= PATTERN_PX) {
        paint.fillStyle = patterns[part.pattern];
        paint.fillRect(x, y, wide, tall);
      }
    }
    paint.globalAlpha = 1;
    if (this.#slow.has(row.step_id)) {
      const middle = x + wide / 2, half = Math.min(Math.max(wide / 2, 1), 4);
      paint.fillStyle = colors["bad"] ?? "";
      paint.beginPath();
      paint.moveTo(middle - half, y - 9);
      paint.lineTo(middle + half, y - 9);
      paint.lineTo(middle, y - 2);
      paint.fill();
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number} top
   */
  #paintAxis(paint, colors, top) {
    paint.textAlign = "right";
    paint.textBaseline = "middle";
    // As if the axis were twice as long: its marks may be nearer than those of a time axis.
    for (const { time: at, text } of timeMarks(0, top, 2 * (HEIGHT - TOP - BOTTOM))) {
      const y = HEIGHT - BOTTOM - (at / top) * (HEIGHT - TOP - BOTTOM);
      paint.fillStyle = colors["line"] ?? "";
      paint.fillRect(LEFT, y, this.#width(), 1);
      paint.fillStyle = colors["quiet"] ?? "";
      paint.fillText(at ? text : "0", LEFT - 6, y);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number[]} places
   */
  #paintNames(paint, colors, places) {
    paint.textAlign = "center";
    paint.textBaseline = "top";
    paint.fillStyle = colors["quiet"] ?? "";
    const width = this.#width(), each = width / (this.viewport.span / STEP);
    const every = Math.max(1, Math.ceil(LABEL_PX / each));
    for (const place of places) {
      const middle = this.viewport.x((place + 0.5) * STEP, width);
      if (place % every || middle < 0 || middle > width) continue;
      const text = cut(this.#rows[place]?.name ?? "", (every * each) / LETTER_PX);
      const half = paint.measureText(text).width / 2;
      const x = LEFT + Math.min(middle, width - half);
      paint.fillText(text, x, HEIGHT - BOTTOM + 6);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number} top
   */
  #paintMedians(paint, colors, top) {
    if (this.#rows.length < 2) return;
    paint.font = "12px system-ui, sans-serif";
    paint.textAlign = "right";
    paint.textBaseline = "bottom";
    let x = LEFT + this.#width() - 4, before = Infinity;
    const inOrder = [...this.#medians].sort((one, other) => one.median_ps - other.median_ps);
    for (const one of inOrder) {
      const y = HEIGHT - BOTTOM - (one.median_ps / top) * (HEIGHT - TOP - BOTTOM);
      paint.strokeStyle = colors["text"] ?? "";
      paint.lineWidth = 1;
      paint.setLineDash([5, 4]);
      paint.beginPath();
      paint.moveTo(LEFT, y);
      paint.lineTo(LEFT + this.#width(), y);
      paint.stroke();
      paint.setLineDash([]);
      const text = this.#medianText(one), wide = paint.measureText(text).width;
      // Words of lines that are close stand side by side.
      if (before - y > 16) x = LEFT + this.#width() - 4;
      before = y;
      paint.fillStyle = colors["panel"] ?? "";
      paint.fillRect(x - wide - 3, y - 16, wide + 6, 14);
      paint.fillStyle = colors["text"] ?? "";
      paint.fillText(text, x, y - 2);
      x -= wide + 12;
    }
  }

  /** @param {Median} median */
  #medianText({ name, median_ps }) {
    const of = this.#medians.length > 1 ? `${cut(name || "no name", 24)}: ` : "";
    return `${of}median ${time(median_ps)}`;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    const row = /** @type {any} */ (this.#rows[this.#placeAt(x)]);
    if (!row) {
      hideTip();
      return;
    }
    const box = this.canvas.getBoundingClientRect();
    const parts = PARTS.filter(({ name }) => row[`${name}_ps`] > 0);
    const told = shares(parts.map(({ name }) => row[`${name}_ps`]));
    showTip(box.left + x, box.top + y, [`${row.name || `step ${row.step_id}`}: ${time(row.wall_ps)}`,
      ...parts.map(({ name, text }, place) =>
        `${text} ${time(row[`${name}_ps`])} (${told[place]})`),
      ...(this.#slow.has(row.step_id) ? ["twice the median or more"] : []),
      ...(row.is_cut_off ? ["cut off by the end of the record"] : [])]);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.#rows.length - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: this.#chosen < 0 ? last : this.#chosen - 1,
      ArrowRight: this.#chosen + 1, Home: 0, End: last };
    const place = places[event.key];
    if (place === undefined) {
      moveByKey(event, this.viewport);
      return;
    }
    event.preventDefault();
    const fitted = Math.max(0, Math.min(place, last));
    const row = this.#rows[fitted];
    if (row) this.actions.choose(row);
  }
}

/** @param {Step | undefined} row */
function wall(row) {
  return row?.wall_ps ?? 0;
}

/**
 * A name in so many letters: its end tells steps apart.
 * @param {string} name
 * @param {number} letters
 */
function cut(name, letters) {
  const most = Math.max(Math.floor(letters), 4);
  return name.length > most ? `…${name.slice(name.length - most + 1)}` : name;
}

/**
 * @param {number} first
 * @param {number} last
 */
function range(first, last) {
  return Array.from({ length: Math.max(last - first, 0) }, (_, place) => first + place);
}
