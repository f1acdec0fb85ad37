/** The chart of steps: a bar each, stacked by what its time went to, on a canvas. */

import { contextOf } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { shares, time } from "../../core/format.js";
import { attachGestures, moveByKey } from "../../core/gestures.js";
import { PARTS } from "../../core/parts.js";
import { onTheme, palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { Viewport } from "../../core/viewport.js";
import { paintLevels, paintTimes } from "./chart_axes.js";
import { envelopeOf, paintEnvelope, slowPixels } from "./envelope.js";
import { cut, range } from "./labels.js";
import { patternOf } from "./pattern.js";

const LEFT = 78, TOP = 20, BOTTOM = 24, RIGHT = 8, HEIGHT = 260;
/** The viewport's unit: a step is this wide. */
const STEP = 1000;
const LABEL_PX = 90, LETTER_PX = 8;
/** Hatching shows on bars that are at least so wide. */
const PATTERN_PX = 3;
/** What the record does not hold whole is drawn so pale. */
const CUT_OFF = 0.4;
/** Of many slow steps so many are marked, so far apart. */
const MARKS = 40, MARK_PX = 9;
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
  /** The last step of a range that begins with the chosen one. */
  #until = -1;
  #drawn = 0;
  /** @type {{key: string, bins: (import("./envelope.js").Bin | null)[]} | null} */
  #bins = null;
  /** @type {(() => void)[]} */
  #ends = [];

  /**
   * @param {object} actions
   * @param {(step: Step) => void} actions.choose
   * @param {(first: Step, last: Step) => void} actions.chooseRange
   * @param {(range: string | null) => void} actions.zoom
   */
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
    this.#bins = null;
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
      + `${this.#medians.map((one) => this.#medianText(one)).join(", ")}, longest ${time(longest)}. Left and right choose a step, with Shift a range; the table below has the numbers.`);
    this.draw();
  }

  /** Which steps are shown, as `first-last` by their places from 0; null: all. */
  #range() {
    const { from, to, isWhole } = this.viewport;
    return isWhole ? null : `${from / STEP}-${to / STEP}`;
  }

  /** The places that are shown, the second exclusive; null: to the end. @returns {[number, number | null]} */
  get places() {
    return this.viewport.isWhole ? [0, null] : this.#shown();
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
   * @param {number} [until] the last place of a range
   */
  choose(place, until = place) {
    this.#chosen = place;
    this.#until = until;
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
      measure: (from, to, done) => this.#measure(from, to, done),
    });
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {boolean} done
   */
  #measure(from, to, done) {
    const last = this.#rows.length - 1;
    const [one, other] = [from, to].map((at) => Math.max(0, Math.min(Math.floor(at / STEP), last)));
    const first = this.#rows[one ?? 0], until = this.#rows[other ?? 0];
    if (done && first && until) this.actions.chooseRange(first, until);
    else this.choose(one ?? -1, other);
  }

  #width() {
    return Math.max(this.element.clientWidth - LEFT - RIGHT, 1);
  }

  /** @param {number} x */
  #placeAt(x) {
    if (x < LEFT) return -1;
    const bins = this.#envelope();
    const width = this.#width();
    if (bins) return bins[Math.min(Math.floor(x - LEFT), bins.length - 1)]?.longest ?? -1;
    return Math.floor(this.viewport.time(x - LEFT, width) / STEP);
  }

  /** @returns {[number, number]} the first place that is shown, and the one after the last */
  #shown() {
    return [Math.max(0, Math.floor(this.viewport.from / STEP)),
      Math.min(this.#rows.length, Math.ceil(this.viewport.to / STEP))];
  }

  /** What is drawn where there are more steps than pixels; null: every step. */
  #envelope() {
    const [first, last] = this.#shown(), width = this.#width();
    if (last - first <= width) return null;
    const key = `${this.viewport.from} ${this.viewport.to} ${width}`;
    if (this.#bins?.key !== key) {
      this.#bins = { key, bins: envelopeOf(this.#rows, first, last, width,
        (place) => this.viewport.x((place + 0.5) * STEP, width)) };
    }
    return this.#bins.bins;
  }

  #paint() {
    const ratio = devicePixelRatio || 1;
    const full = this.element.clientWidth;
    this.canvas.width = Math.round(full * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.canvas.style.width = `${full}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const paint = contextOf(this.canvas);
    if (!paint || !full) return;
    paint.scale(ratio, ratio);
    const colors = palette(), width = this.#width();
    const lines = colors["panel"] ?? "";
    const patterns = { "/": patternOf(paint, "/", lines), x: patternOf(paint, "x", lines) };
    const look = { colors, patterns };
    paint.font = "12px system-ui, sans-serif";
    const [first, last] = this.#shown(), bins = this.#envelope();
    const places = bins ? [] : range(first, last);
    const longest = bins ? bins.reduce((most, bin) => Math.max(most, bin?.max ?? 0), 0)
      : places.reduce((most, place) => Math.max(most, wall(this.#rows[place])), 0);
    const top = Math.max(1, longest, ...this.#medians.map(({ median_ps }) => median_ps)) * 1.06;
    const frame = { left: LEFT, width, top: TOP, bottom: HEIGHT - BOTTOM, most: top };
    paintTimes(paint, colors, frame);
    const each = width / (this.viewport.span / STEP);
    const bar = Math.max(each - (each >= 5 ? Math.min(each * 0.15, 6) : 0), 1);
    paint.save();
    paint.beginPath();
    paint.rect(LEFT, 0, width, HEIGHT);
    paint.clip();
    if (bins) {
      const scale = (HEIGHT - TOP - BOTTOM) / top, bottom = HEIGHT - BOTTOM;
      paintEnvelope(paint, colors, bins, { left: LEFT, bottom, scale });
      const isSlow = (/** @type {number} */ place) => this.#slow.has(this.#rows[place]?.step_id ?? -1);
      for (const x of slowPixels(bins, isSlow, MARK_PX, MARKS)) {
        this.#paintSlow(paint, colors, LEFT + x + 0.5, 4, bottom - (bins[x]?.max ?? 0) * scale);
      }
    } else {
      for (const place of places) {
        const x = LEFT + this.viewport.x(place * STEP, width) + (each - bar) / 2;
        this.#paintBar(paint, look, place, x, bar, top);
      }
    }
    if (this.#chosen >= 0) {
      const x = LEFT + this.viewport.x(this.#chosen * STEP, width);
      const wide = each * (this.#until - this.#chosen + 1);
      paint.strokeStyle = colors["text"] ?? "";
      paint.lineWidth = 2;
      paint.strokeRect(x + 1, TOP - 6, Math.max(wide - 2, 2), HEIGHT - TOP - BOTTOM + 6);
    }
    paint.restore();
    this.#paintNames(paint, colors, range(first, last));
    if (this.#rows.length > 1) {
      paintLevels(paint, colors, frame, this.#medians.map((one) =>
        ({ ps: one.median_ps, text: this.#medianText(one) })));
    }
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
      this.#paintSlow(paint, colors, x + wide / 2, Math.min(Math.max(wide / 2, 1), 4), y);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number} middle
   * @param {number} half
   * @param {number} y
   */
  #paintSlow(paint, colors, middle, half, y) {
    paint.fillStyle = colors["bad"] ?? "";
    paint.beginPath();
    paint.moveTo(middle - half, y - 9);
    paint.lineTo(middle + half, y - 9);
    paint.lineTo(middle, y - 2);
    paint.fill();
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
    const bin = this.#envelope()?.[Math.floor(x - LEFT)];
    if (bin && bin.last > bin.first) {
      showTip(box.left + x, box.top + y, [`${bin.last - bin.first + 1} steps, ${
        labelOf(this.#rows[bin.first])} to ${labelOf(this.#rows[bin.last])}`,
      `mean ${time(bin.mean)}, from ${time(bin.min)} to ${time(bin.max)}`,
      `longest: ${labelOf(row)}`]);
      return;
    }
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
    const from = event.shiftKey && this.#chosen >= 0 ? this.#chosen : -1;
    const next = from >= 0 && event.key === "ArrowRight" ? this.#until + 1
      : from >= 0 && event.key === "ArrowLeft" ? Math.max(this.#until - 1, from) : place;
    const row = this.#rows[Math.max(0, Math.min(next, last))];
    const first = this.#rows[from];
    if (row && first) this.actions.chooseRange(first, row);
    else if (row) this.actions.choose(row);
  }
}

/** @param {Step | undefined} row */
function labelOf(row) {
  return row ? row.name || `step ${row.step_id}` : "";
}

/** @param {Step | undefined} row */
function wall(row) {
  return row?.wall_ps ?? 0;
}
