/** What stands above the lanes on their time axis: each a label and a canvas. */

import { timeMarks } from "../../core/axis.js";
import { h } from "../../core/dom.js";
import { time as formatTime } from "../../core/format.js";
import { attachGestures } from "../../core/gestures.js";
import { palette } from "../../core/theme.js";
import { hideTip } from "../../core/tooltip.js";
import { Surface } from "./surface.js";

const AIR_PX = 10;
/** Digits that show every picosecond. */
const EXACT = 16;

/** @typedef {import("../../core/viewport.js").Viewport} Viewport */
/** @typedef {Record<string, string>} Colors */
/**
 * What every band needs.
 * @typedef {object} Shared
 * @property {Viewport} viewport
 * @property {() => void} changed the picture has to be drawn again
 * @property {(from: number, to: number, done: boolean, lines: number[] | null) => void} measure
 * @property {(x: number | null) => void} pointed
 */
/**
 * @typedef {object} BandOptions
 * @property {string} name of its class
 * @property {string} label of its canvas
 * @property {number} height
 * @property {(Node | string)[]} [title] what stands at its left
 * @property {(x: number, y: number) => void} [click]
 * @property {(x: number, y: number) => void} [hover]
 * @property {boolean} [still] does not move the viewport by itself
 */

export class Band {
  /**
   * @param {Shared} shared
   * @param {BandOptions} options
   */
  constructor(shared, options) {
    this.shared = shared;
    this.surface = new Surface({ role: "img", "aria-label": options.label }, shared.changed);
    this.title = h("div", { class: "title" }, ...(options.title ?? []));
    this.element = h("div", { class: `tl-band ${options.name}`, style: { height: `${options.height}px` } },
      this.title, this.surface.canvas);
    this.ends = options.still ? () => undefined : attachGestures(this.surface.canvas, {
      viewport: shared.viewport, left: () => 0, width: () => this.surface.width,
      measure: (from, to, done) => shared.measure(from, to, done, null),
      ...(options.click ? { click: options.click } : {}),
      hover: (x, y) => {
        shared.pointed(x);
        options.hover?.(x, y);
      },
      leave: () => {
        shared.pointed(null);
        hideTip();
      },
    });
  }

  /**
   * Show a height other than before.
   * @param {number} height
   */
  setHeight(height) {
    this.element.style.height = `${height}px`;
  }

  /** @param {string} label */
  setLabel(label) {
    this.surface.canvas.setAttribute("aria-label", label);
  }

  /** Where a tooltip belongs. @param {number} x @param {number} y */
  place(x, y) {
    const box = this.surface.canvas.getBoundingClientRect();
    return /** @type {[number, number]} */ ([box.left + x, box.top + y]);
  }

  destroy() {
    this.ends();
    this.surface.destroy();
  }
}

/** The time axis. */
export class AxisBand extends Band {
  /** @param {Shared} shared */
  constructor(shared) {
    super(shared, { name: "axis", label: "Time axis", height: 22, title: ["Time"] });
  }

  draw() {
    const context = this.surface.begin();
    if (!context) return;
    const { viewport } = this.shared;
    const { width, height } = this.surface;
    const colors = palette();
    context.fillStyle = colors["quiet"] ?? "";
    let marks = timeMarks(viewport.from, viewport.to, width), base = 0;
    const seen = marks.filter(({ time, text }) =>
      viewport.x(time, width) + 4 + context.measureText(text).width <= width);
    // On a narrow screen one mark alone is no scale.
    if (seen.length < 2) marks = timeMarks(viewport.from, viewport.to, 2 * width);
    const [first, second] = marks;
    const apart = first && second ? viewport.x(second.time, width) - viewport.x(first.time, width) : width;
    if (first && marks.some(({ text }) => context.measureText(text).width > apart - AIR_PX)) {
      // Deep in a long profile whole times do not fit: they count from the first mark.
      base = first.time;
      marks = timeMarks(0, viewport.to - base, width * ((viewport.to - base) / viewport.span))
        .map(({ time, text }) => ({ time, text: `+${text}` }));
    }
    const title = base ? `from ${formatTime(base, EXACT)}` : "Time";
    if (this.title.textContent !== title) this.title.textContent = title;
    for (const { time, text } of marks) {
      const x = Math.round(viewport.x(base + time, width));
      context.fillRect(x, height - 6, 1, 6);
      // A time that is cut off reads as another one.
      if (x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, height / 2 - 1);
    }
  }
}

/** All of the profile, with what is shown of it; dragging moves that, or chooses another stretch. */
export class OverviewBand extends Band {
  /** @type {Float64Array | null} per pixel how many lines are busy */
  #busy = null;
  #most = 1;
  /** @type {{begin: number, offset: number | null} | null} */
  #drag = null;

  /** @param {Shared} shared */
  constructor(shared) {
    super(shared, { name: "overview", label: "The whole profile: how much runs, and what is shown",
      height: 30, title: ["Whole"], still: true });
    const { canvas } = this.surface;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", () => void (this.#drag = null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      shared.viewport.zoom(Math.exp(event.deltaY * 0.0016), this.#time(event));
    }, { passive: false });
  }

  /**
   * How much runs where, from a tile of the whole.
   * @param {Record<string, any>} tile columns
   */
  setTile(tile) {
    const width = tile["width"], span = tile["end_ps"] - tile["start_ps"];
    const busy = new Float64Array(width);
    const { begin_ps: begin, duration_ps: duration, busy_ps: taken } = tile;
    for (let item = 0; item < begin.length; item++) {
      const left = Math.max(0, (begin[item] / span) * width);
      const right = Math.min(width, ((begin[item] + duration[item]) / span) * width);
      const share = duration[item] > 0 ? Math.min(1, taken[item] / duration[item]) : 0;
      for (let x = Math.floor(left); x < right; x++) {
        busy[x] = (busy[x] ?? 0) + share * (Math.min(right, x + 1) - Math.max(left, x));
      }
    }
    this.#busy = busy;
    this.#most = busy.reduce((most, value) => Math.max(most, value), 0) || 1;
    this.shared.changed();
  }

  draw() {
    const context = this.surface.begin();
    if (!context) return;
    const { width, height } = this.surface;
    const colors = palette();
    if (this.#busy) {
      const columns = this.#busy.length;
      context.fillStyle = colors["series-8"] ?? "";
      for (let x = 0; x < width; x++) {
        const first = Math.floor((x * columns) / width);
        const last = Math.max(first + 1, Math.floor(((x + 1) * columns) / width));
        let most = 0;
        for (let column = first; column < last; column++) {
          most = Math.max(most, this.#busy[column] ?? 0);
        }
        const tall = (most / this.#most) * (height - 4);
        context.fillRect(x, height - tall, 1, tall);
      }
    }
    const [left, right] = this.#window();
    context.fillStyle = colors["ground"] ?? "";
    context.globalAlpha = 0.72;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors["accent"] ?? "";
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, Math.max(2, right - left - 2), height - 2);
  }

  /** Where the viewport lies, in pixels. @returns {[number, number]} */
  #window() {
    const { viewport } = this.shared;
    const perPs = this.surface.width / (viewport.last - viewport.first);
    const left = (viewport.from - viewport.first) * perPs;
    return [left, Math.max(left + 3, (viewport.to - viewport.first) * perPs)];
  }

  /** @param {MouseEvent} event */
  #time(event) {
    const { viewport } = this.shared;
    const x = event.clientX - this.surface.canvas.getBoundingClientRect().left;
    return viewport.first + (x / this.surface.width) * (viewport.last - viewport.first);
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0) return;
    const { viewport } = this.shared;
    const x = event.clientX - this.surface.canvas.getBoundingClientRect().left;
    const [left, right] = this.#window();
    const isInside = x >= left - 3 && x <= right + 3 && !viewport.isWhole;
    this.#drag = { begin: this.#time(event),
      offset: isInside ? this.#time(event) - viewport.from : null };
    this.surface.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (!this.#drag) return;
    const { viewport } = this.shared;
    const at = this.#time(event);
    if (this.#drag.offset !== null) {
      const from = at - this.#drag.offset;
      const begin = Math.min(Math.max(from, viewport.first), viewport.last - viewport.span);
      viewport.show(begin, begin + viewport.span);
    } else if (Math.abs(at - this.#drag.begin) > (viewport.last - viewport.first) / 300) {
      viewport.show(Math.min(at, this.#drag.begin), Math.max(at, this.#drag.begin));
    }
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (!this.#drag) return;
    const { viewport } = this.shared;
    const at = this.#time(event), moved = Math.abs(at - this.#drag.begin);
    if (moved <= (viewport.last - viewport.first) / 300 && this.#drag.offset === null) {
      viewport.show(at - viewport.span / 2, at + viewport.span / 2);
    }
    this.#drag = null;
  }
}

/** Where the search found something. */
export class HitsBand extends Band {
  /** @type {{from: number, to: number, bins: ArrayLike<any>} | null} */
  #hits = null;

  /** @param {Shared} shared */
  constructor(shared) {
    super(shared, { name: "hits", label: "Events that the search found", height: 16,
      title: ["Matches"] });
  }

  /** @param {{from: number, to: number, bins: ArrayLike<any>} | null} hits */
  setHits(hits) {
    this.#hits = hits;
    this.element.hidden = !hits;
    this.shared.changed();
  }

  draw() {
    const context = this.surface.begin();
    if (!context || !this.#hits) return;
    const { viewport } = this.shared;
    const { width, height } = this.surface;
    const { from, to, bins } = this.#hits;
    let most = 1;
    for (let bin = 0; bin < bins.length; bin++) most = Math.max(most, bins[bin]);
    context.fillStyle = palette()["accent"] ?? "";
    const each = (to - from) / bins.length;
    const wide = Math.max(1, (each / viewport.span) * width);
    for (let bin = 0; bin < bins.length; bin++) {
      if (!bins[bin]) continue;
      const tall = 4 + (height - 5) * (Math.log1p(bins[bin]) / Math.log1p(most));
      context.fillRect(Math.round(viewport.x(from + bin * each, width)), height - tall, wide, tall);
    }
  }
}
