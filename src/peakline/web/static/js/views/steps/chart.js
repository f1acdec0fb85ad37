/** The chart of steps: a bar each, stacked by what its time went to, on a canvas. */

import { isAbort } from "../../core/api.js";
import { contextOf } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { shares, time, worded } from "../../core/format.js";
import { attachGestures, moveByKey } from "../../core/gestures.js";
import { PARTS } from "../../core/parts.js";
import { onTheme, palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { Viewport } from "../../core/viewport.js";
import { paintLevels, paintTimes } from "./chart_axes.js";
import { marked, paintBar, paintEnvelope, paintMark } from "./envelope.js";
import { cut } from "./labels.js";
import { StepsOverview } from "./overview.js";
import { patternOf } from "./pattern.js";
import { WORDING } from "../../core/wording.js";

const LEFT = 78, TOP = 20, BOTTOM = 24, RIGHT = 8, HEIGHT = 260;
/** The viewport's unit: a step is this wide. */
const STEP = 1000;
const LABEL_PX = 90, LETTER_PX = 8;
/** Marks of slow steps are so far apart. */
const MARK_PX = 9;
/** Of fewer steps a strip of all says nothing more. */
const STRIP_FROM = 40;
/** So many names of steps have a line of their median. */
const MEDIANS = 4;

/** Zooming asks for the columns in view only when it rests. */
const LATER_MS = 120;

/** @typedef {import("./source.js").Bin} Bin */
/** @typedef {import("./source.js").Columns} Columns */
/** @typedef {{name: string, median_ps: number}} Median of the steps of one name */

export class StepChart {
  /** @type {import("./source.js").StepSource | null} */
  #source = null;
  /** What is drawn: of the steps in view, or of more. @type {Columns | null} */
  #columns = null;
  /** @type {Median[]} */
  #medians = [];
  #chosen = -1;
  /** The last step of a range that begins with the chosen one. */
  #until = -1;
  #drawn = 0;
  #requested = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #asking = new AbortController();
  /** @type {(() => void)[]} */
  #ends = [];

  /**
   * @param {object} actions of places of steps, counted from 0 in order of time
   * @param {(place: number) => void} actions.choose
   * @param {(first: number, last: number) => void} actions.chooseRange
   * @param {(range: string | null) => void} actions.zoom
   */
  constructor(actions) {
    this.actions = actions;
    this.viewport = new Viewport(0, STEP);
    this.canvas = h("canvas", { tabindex: 0, role: "application", class: "step-chart" });
    this.overview = new StepsOverview({ viewport: () => this.viewport, left: LEFT, right: RIGHT,
      measure: (from, to, done) => this.#measure(from, to, done) });
    this.box = h("div", { class: "canvas-box" }, this.canvas);
    this.element = h("div", {}, this.overview.canvas, this.box);
    const resize = new ResizeObserver(() => {
      this.#later();
      this.draw();
    });
    resize.observe(this.box);
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    // A wheel alone scrolls the page, on which the chart is only a part.
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) event.stopPropagation();
    }, { capture: true, passive: true });
    this.#ends = [() => resize.disconnect(), onTheme(() => this.draw()), () => this.#detach(),
      () => this.overview.destroy()];
    this.#detach = this.#attach();
  }

  /** @type {() => void} */
  #detach;

  /**
   * @param {import("./source.js").StepSource} source
   * @param {Median[]} medians those with most time first
   * @param {number} longest in ps
   */
  setSource(source, medians, longest) {
    this.#source = source;
    this.#columns = source.whole;
    this.#requested = "";
    this.#asking.abort();
    this.#medians = medians.slice(0, MEDIANS);
    this.#detach();
    this.viewport = new Viewport(0, Math.max(source.total, 1) * STEP);
    this.viewport.onChange(() => {
      this.actions.zoom(this.#range());
      this.#later();
      this.draw();
    });
    this.#detach = this.#attach();
    this.canvas.setAttribute("aria-label", `Times of ${source.total} steps, `
      + `${this.#medians.map((one) => this.#medianText(one)).join(", ")}, longest ${time(longest)}. Left and right choose a step, with Shift a range; the table below has the numbers.`);
    this.overview.canvas.hidden = source.total < STRIP_FROM;
    this.overview.setColumns(source.whole);
    this.#later();
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
    const result = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(range);
    if (!result) this.viewport.showAll();
    else if (range !== this.#range()) {
      this.viewport.show(Number(result[1]) * STEP, Number(result[2]) * STEP);
    }
  }

  /**
   * Mark a step, or none (-1), and bring it into view.
   * @param {number} place
   * @param {number} [until] the last place of a range
   */
  choose(place, until = place) {
    this.#chosen = place;
    this.#until = until;
    this.overview.choose(place < 0 ? null : [place, until]);
    const { from, to, span } = this.viewport;
    const begin = place * STEP;
    if (place >= 0 && (begin < from || begin + STEP > to)) {
      this.viewport.show(begin - span / 2, begin + span / 2);
    }
    this.draw();
  }

  draw() {
    this.overview.redraw();
    if (this.#drawn) return;
    this.#drawn = requestAnimationFrame(() => {
      this.#drawn = 0;
      this.#paint();
    });
  }

  destroy() {
    cancelAnimationFrame(this.#drawn);
    clearTimeout(this.#timer);
    this.#asking.abort();
    for (const end of this.#ends) end();
    hideTip();
  }

  #attach() {
    return attachGestures(this.canvas, {
      viewport: this.viewport, left: () => LEFT, width: () => this.#width(),
      click: (x) => {
        const bin = this.#binAt(x);
        if (bin) this.actions.choose(bin.longest);
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
    const last = (this.#source?.total ?? 1) - 1;
    const [one = 0, other = 0] = [from, to].map((at) => Math.max(0, Math.min(Math.floor(at / STEP), last)));
    if (done) this.actions.chooseRange(one, other);
    else this.choose(one, other);
  }

  #width() {
    return Math.max(this.box.clientWidth - LEFT - RIGHT, 1);
  }

  /** @param {number} place of a step @returns {number} pixels, of its left edge */
  #x(place) {
    return LEFT + this.viewport.x(place * STEP, this.#width());
  }

  /** @param {number} x @returns {Bin | null} */
  #binAt(x) {
    if (x < LEFT) return null;
    const place = Math.floor(this.viewport.time(x - LEFT, this.#width()) / STEP);
    return this.#columns?.around(place) ?? null;
  }

  /** @returns {[number, number]} the first place that is shown, and the one after the last */
  #shown() {
    return [Math.max(0, Math.floor(this.viewport.from / STEP)),
      Math.min(this.#source?.total ?? 0, Math.ceil(this.viewport.to / STEP))];
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), LATER_MS);
  }

  /** Fetch the columns of what is in view, where those that are here are coarser or of less. */
  async #ask() {
    const source = this.#source, [first, last] = this.#shown(), width = Math.floor(this.#width());
    if (!source || last <= first || width < 20) return;
    if (source.whole.isSingle && last - first <= width) {
      this.#columns = source.whole;
      this.draw();
      return;
    }
    const key = `${first} ${last} ${width}`;
    if (key === this.#requested) return;
    this.#requested = key;
    this.#asking.abort();
    this.#asking = new AbortController();
    try {
      const columns = await source.columns(first, last, width, this.#asking.signal);
      if (key !== this.#requested) return;
      this.#columns = columns;
      this.draw();
    } catch (error) {
      // What is drawn is coarser, and right; the next movement tries again.
      if (!isAbort(error) && key === this.#requested) this.#requested = "";
    }
  }

  /** The columns in view: the last ones that came, or those of all steps where these hold less. */
  #inView() {
    const [first, last] = this.#shown(), whole = this.#source?.whole ?? null;
    const own = this.#columns;
    const columns = own && own.first <= first && own.last >= last ? own : whole;
    return { columns, bins: columns?.between(first, last) ?? [] };
  }

  #paint() {
    const ratio = devicePixelRatio || 1;
    const full = this.box.clientWidth;
    this.canvas.width = Math.round(full * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.canvas.style.width = `${full}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const paint = contextOf(this.canvas), { columns, bins } = this.#inView();
    if (!paint || !full || !columns) return;
    paint.scale(ratio, ratio);
    const colors = palette(), width = this.#width(), bottom = HEIGHT - BOTTOM;
    const lines = colors["panel"] ?? "";
    const patterns = { "/": patternOf(paint, "/", lines), x: patternOf(paint, "x", lines) };
    paint.font = "12px system-ui, sans-serif";
    const longest = bins.reduce((most, bin) => Math.max(most, bin.max), 0);
    const top = Math.max(1, longest, ...this.#medians.map(({ median_ps }) => median_ps)) * 1.06;
    const frame = { left: LEFT, width, top: TOP, bottom, most: top };
    paintTimes(paint, colors, frame);
    const scale = (bottom - TOP) / top;
    paint.save();
    paint.beginPath();
    paint.rect(LEFT, 0, width, HEIGHT);
    paint.clip();
    const where = { bottom, scale, x: (/** @type {number} */ step) => this.#x(step) };
    if (columns.isSingle) for (const bin of bins) paintBar(paint, { colors, patterns }, columns, bin, where);
    else paintEnvelope(paint, colors, columns, bins, where);
    const middle = (/** @type {Bin} */ bin) => (this.#x(bin.first) + this.#x(bin.last + 1)) / 2;
    for (const bin of marked(bins, middle, MARK_PX, width)) {
      const half = columns.isSingle ? Math.min(Math.max((this.#x(1) - this.#x(0)) / 2, 1), 4) : 4;
      paint.fillStyle = colors[bin.isSlow ? "bad" : "quiet"] ?? "";
      paintMark(paint, middle(bin), half, bottom - bin.max * scale);
    }
    if (this.#chosen >= 0) {
      const x = this.#x(this.#chosen), wide = this.#x(this.#until + 1) - x;
      paint.strokeStyle = colors["text"] ?? "";
      paint.lineWidth = 2;
      paint.strokeRect(x + 1, TOP - 6, Math.max(wide - 2, 2), HEIGHT - TOP - BOTTOM + 6);
    }
    paint.restore();
    this.#paintNames(paint, colors, bins);
    if ((this.#source?.total ?? 0) > 1) {
      paintLevels(paint, colors, frame, this.#medians.map((one) =>
        ({ ps: one.median_ps, text: this.#medianText(one) })));
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {Bin[]} bins
   */
  #paintNames(paint, colors, bins) {
    paint.textAlign = "center";
    paint.textBaseline = "top";
    paint.fillStyle = colors["quiet"] ?? "";
    const width = this.#width(), each = width / Math.max(bins.length, 1);
    const every = Math.max(1, Math.ceil(LABEL_PX / each));
    let before = 0;
    for (const bin of bins) {
      const middle = (this.#x(bin.first) + this.#x(bin.last + 1)) / 2 - LEFT;
      if (bin.place % every || middle < 0 || middle > width) continue;
      const text = cut(bin.name, (every * each) / LETTER_PX);
      const half = paint.measureText(text).width / 2;
      const x = LEFT + Math.min(middle, width - half);
      if (x - half < before) continue;
      before = x + half + 6;
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
    const bin = this.#binAt(x), columns = this.#columns;
    if (!bin || !columns) {
      hideTip();
      return;
    }
    const box = this.canvas.getBoundingClientRect();
    const many = bin.last - bin.first + 1;
    const says = this.#source?.known(bin.id)?.says;
    const about = [...(bin.isSlow ? [`slow: ${says ?? WORDING.slow}`] : []),
      ...(bin.isWarmUp ? [`first step: ${says ?? WORDING.steps.warms_up}`] : [])];
    if (many > 1) {
      showTip(box.left + x, box.top + y, [`${many} steps around ${bin.name}`,
        worded(WORDING.steps.bin, { mean: time(bin.mean), median: time(bin.median),
          min: time(bin.min), max: time(bin.max) }),
        `longest: ${bin.name}`, ...about]);
      return;
    }
    const parts = PARTS.map((part) => ({ ...part, ps: columns.part(bin, part.name) }))
      .filter(({ ps }) => ps > 0);
    const percents = shares(parts.map(({ ps }) => ps));
    showTip(box.left + x, box.top + y, [`${bin.name}: ${time(bin.max)}`,
      ...parts.map(({ text, ps }, place) => `${text} ${time(ps)} (${percents[place]})`), ...about,
      ...(bin.isCutOff ? [WORDING.steps.cut_off] : [])]);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = (this.#source?.total ?? 0) - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: this.#chosen < 0 ? last : this.#chosen - 1,
      ArrowRight: this.#chosen + 1, Home: 0, End: last };
    const place = places[event.key];
    if (place === undefined) {
      moveByKey(event, this.viewport);
      return;
    }
    event.preventDefault();
    if (last < 0) return;
    const fit = (/** @type {number} */ at) => Math.max(0, Math.min(at, last));
    const from = event.shiftKey && this.#chosen >= 0 ? this.#chosen : -1;
    const next = from >= 0 && event.key === "ArrowRight" ? this.#until + 1
      : from >= 0 && event.key === "ArrowLeft" ? Math.max(this.#until - 1, from) : place;
    if (from >= 0) this.actions.chooseRange(from, fit(next));
    else this.actions.choose(fit(next));
  }
}
