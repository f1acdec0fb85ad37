/** The chart: memory in use over time, with steps, limits, the peak and the moment looked at. */

import { Surface } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { bytes, time, worded } from "../../core/format.js";
import { attachGestures, isTyping, moveByKey } from "../../core/gestures.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { Following } from "./counters.js";
import { extremes, paintCurve, seriesColor, valueAt } from "./curves.js";
import { color, paintAxes, paintLevel, paintLife, paintMoment, paintPeak, paintSteps, xOf, yOf }
  from "./frame.js";
import { Layers } from "./layers.js";
import { Polygons } from "./polygons.js";
import { paintRange, paintReserved } from "./range.js";
import { BY } from "./state.js";
import { WORDING } from "../../core/wording.js";

/** Keys that scroll the page. */
const SCROLLING = new Set(["Home", "End"]);
const LEFT = 84;
const RIGHT = 14;
const STRIP = 20;
const AXIS = 26;
const LIFE = 20;
const AIR = 1.12;
/** A capacity is drawn where the peak takes so much of it; else it would flatten the curves. */
const NEAR = 0.5;

/** @typedef {import("./counters.js").Curves} Curves */
/** @typedef {import("./model.js").Model} Model */

/**
 * @typedef {object} Wishes what a reader does on the chart
 * @property {(from: number, to: number, allocator: string) => void} choose a stretch as wide as a pixel
 * @property {(event: KeyboardEvent) => boolean} key one that is not about zoom or pan
 * @property {(error: unknown) => void} failed
 * @property {(record: number, at: number | null) => void} chooseBuffer one of the polygons
 * @property {(a: number, b: number, isDone: boolean) => void} measure a range
 * @property {() => void} drawn an answer about layers or polygons is there
 */

export class Chart {
  /** @type {Curves | null} */
  #fine = null;
  /** @type {number | null} */
  #pointer = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Model} model
   * @param {Wishes} wishes
   */
  constructor(context, model, wishes) {
    this.model = model;
    this.wishes = wishes;
    this.canvas = h("canvas", {
      class: "memory-chart", tabindex: 0, role: "application",
      "aria-roledescription": "chart", "aria-busy": "true",
    });
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#draw(context, width, height), () => this.#changed());
    this.following = new Following(() => this.#wanted(), (wanted) => this.#ask(wanted),
      wishes.failed);
    const result = () => {
      this.surface.redraw();
      wishes.drawn();
    };
    this.layers = new Layers(context, model, result);
    this.polygons = new Polygons(context, model, result);
    this.pictures = new Following(() => this.#pictured(), ([picture, query]) => picture.ask(query),
      wishes.failed);
    const { viewport } = model;
    this.ends = [
      viewport.onChange(() => this.#changed()), model.onPoint(() => this.surface.redraw()),
      attachGestures(this.canvas, {
        viewport, left: () => LEFT, width: () => this.#width,
        click: (x, y) => this.#click(x, y, wishes),
        hover: (x, y) => this.#hover(x, y),
        leave: () => {
          this.#pointer = null;
          model.point(null);
          hideTip();
        },
        measure: (from, to, isDone) => wishes.measure(Math.round(from), Math.round(to), isDone),
      }),
    ];
  }

  /**
   * A key of the view, wherever the focus is but in a field or a table.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (isTyping(event)) return;
    // Of the page's own keys only those that the focused chart takes.
    if (SCROLLING.has(event.key) && event.target !== this.canvas) return;
    const { viewport, shownMoment } = this.model;
    if (moveByKey(event, viewport, this.#pointer ?? shownMoment ?? undefined)) return;
    if (this.wishes.key(event)) event.preventDefault();
  }

  get #width() {
    return Math.max(1, this.surface.width - LEFT - RIGHT);
  }

  /** How many of the screen's pixels the curves are wide. */
  get pixels() {
    return Math.max(1, Math.round(this.#width * devicePixelRatio));
  }

  /** What is drawn besides the viewport changed. */
  redraw() {
    this.#changed();
  }

  destroy() {
    for (const end of this.ends) end();
    this.surface.destroy();
    this.following.destroy();
    this.pictures.destroy();
  }

  #changed() {
    this.surface.redraw();
    void this.following.follow();
    void this.pictures.follow();
  }

  /** The picture besides the curve that is drawn; null for none. */
  get #picture() {
    const { draw } = this.model.state;
    return draw === "stack" ? this.layers : draw === "buffers" ? this.polygons : null;
  }

  /** What the picture has to ask for. @returns {[Layers | Polygons, Record<string, string | number>] | null} */
  #pictured() {
    // What is taken from the device comes with the layers.
    const picture = this.#picture ?? (this.model.state.reserved ? this.layers : null);
    const query = this.surface.width && picture ? picture.wanted(Math.round(this.#width)) : null;
    return picture && query ? [picture, query] : null;
  }

  /** What has to be asked for; null when all that is drawn is known as finely as it can be drawn. */
  #wanted() {
    const { viewport } = this.model;
    const inView = this.#requested(viewport.from, viewport.to);
    if (inView) return inView;
    // The overview has time until what is in view is there.
    return this.#requested(viewport.first, viewport.last);
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  #requested(from, to) {
    const names = this.model.shown.map(({ name }) => name), width = this.pixels;
    if (!this.surface.width || !names.length) return null;
    const isKnown = [this.#fine, this.model.whole].some((curves) => curves && curves.from === from
      && curves.to === to && curves.width === width && names.every((name) => curves.series.has(name)));
    return isKnown ? null : { from, to, width, names };
  }

  /** @param {{from: number, to: number, width: number, names: string[]}} wanted */
  async #ask({ from, to, width, names }) {
    const curves = await this.model.counters.ask(names, from, to, width);
    const { viewport } = this.model;
    if (from === viewport.first && to === viewport.last) this.model.setWhole(curves);
    else this.#fine = curves;
    this.surface.redraw();
  }

  /** The finest answer about what is in view. */
  get #best() {
    const { viewport, whole } = this.model;
    if (viewport.isWhole && whole) return whole;
    return this.#fine ?? whole;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const { model } = this, { viewport, steps, state, life, whole, shown } = model;
    const colors = palette();
    const bottom = height - AXIS - (life ? LIFE : 0), best = this.#best;
    const [low, high] = this.#heights();
    /** @type {import("./frame.js").Frame} */
    const frame = { context, colors, viewport, left: LEFT, right: width - RIGHT, top: STRIP + 8,
      bottom, low, high };
    if (steps) paintSteps(frame, steps, STRIP);
    paintAxes(frame);
    const chosen = model.allocator;
    const picture = this.#picture;
    picture?.paint(frame);
    for (const allocator of shown) {
      // Layers are of one allocator; until they are there, its curve stands for them.
      if (picture && (allocator.name !== chosen?.name || picture.known)) continue;
      paintCurve(frame, best, whole, allocator.name, seriesColor(colors, allocator.place),
        allocator.name === chosen?.name || shown.length === 1);
    }
    const { known } = this.layers;
    if (state.reserved && known?.reserved) paintReserved(frame, known);
    for (const { capacity_bytes: capacity, peak_bytes: peak, label } of shown) {
      if (capacity && (state.capacity || isNear(capacity, peak))) {
        paintLevel(frame, capacity, shown.length > 1 ? `capacity of ${label}: ${bytes(capacity)}`
          : `capacity ${bytes(capacity)}`, color(colors, "bad"), [7, 4]);
      }
    }
    if (chosen && shown.includes(chosen)) {
      const { lifetime_peak_bytes: ever, peak_bytes: peak, peak_time_ps: at } = chosen;
      if (ever !== null && ever > peak && ever <= high) {
        // In the half without the peak, whose own name stands as high.
        paintLevel(frame, ever, `${bytes(ever)} lifetime peak`, color(colors, "quiet"), [2, 3],
          xOf(frame, at) > width / 2 ? "left" : "right");
      }
      paintPeak(frame, at, peak, `peak ${bytes(peak)}`, seriesColor(colors, chosen.place));
    }
    if (life) paintLife(frame, life, life.text, bottom + AXIS - 2, LIFE - 4);
    const range = model.range ?? (state.a !== null && state.b !== null ? [state.a, state.b] : null);
    if (range) paintRange(frame, range[0], range[1]);
    const moment = model.shownMoment;
    if (moment !== null) paintMoment(frame, moment, time(moment, 7), STRIP);
    this.#notify(best, state.fit && low > 0 ? low : 0);
  }

  /** The bytes at the bottom and at the top. @returns {[number, number]} */
  #heights() {
    const { viewport, shown, state } = this.model;
    const best = this.#best;
    // Layers begin at zero.
    if (state.fit && best && !this.#picture) {
      const results = extremes(best, shown.map(({ name }) => name), viewport.from, viewport.to);
      if (results) {
        const [low, high] = results, air = Math.max((high - low) * 0.08, 1);
        return [low - air < (high - low) * 0.3 ? 0 : low - air, high + air];
      }
    }
    let top = 1;
    for (const { peak_bytes: peak, capacity_bytes: capacity, lifetime_peak_bytes: ever } of shown) {
      top = Math.max(top, peak, capacity && (state.capacity || isNear(capacity, peak)) ? capacity : 0,
        ever !== null && ever < 2 * peak ? ever : 0);
    }
    const { known } = this.layers;
    if (state.reserved && known?.reserved) top = Math.max(top, ...known.reserved);
    return [0, top * AIR];
  }

  /**
   * What the chart shows, for those who do not see it, and for tests.
   * @param {Curves | null} best
   * @param {number} low
   */
  #notify(best, low) {
    const { viewport, shown, moment } = this.model;
    const isExact = this.#requested(viewport.from, viewport.to) === null && best !== null
      && this.#pictured() === null;
    this.canvas.setAttribute("aria-busy", String(!isExact));
    if (isExact) this.canvas.dataset["drawn"] = `${viewport.from}-${viewport.to}`;
    const { pointed = null } = this.model;
    this.canvas.dataset["pointed"] = String(pointed?.record ?? pointed?.texts[this.model.state.by] ?? "");
    const looked = moment?.bytes_in_use !== undefined && moment.bytes_in_use !== null
      ? ` ${worded(WORDING.chart.at, { at: time(moment.at_ps), used: bytes(moment.bytes_in_use) })}` : "";
    this.canvas.setAttribute("aria-label",
      `${this.#subject()} from ${time(viewport.from)} to ${time(viewport.to)} of `
      + `${shown.map(({ label, peak_bytes: peak }) => `${label}, peak ${bytes(peak)}`).join("; ")}.`
      + `${low ? ` ${worded(WORDING.chart.from, { low: bytes(low) })}` : ""}${looked}`);
  }

  /** What the picture is of, in its description. */
  #subject() {
    const { draw, by } = this.model.state;
    return worded(WORDING.chart.of[draw], { by: BY[by].toLowerCase() });
  }

  /** The bytes at a height of the picture. @param {number} y */
  #value(y) {
    const [low, high] = this.#heights();
    const top = STRIP + 8, bottom = this.surface.height - AXIS - (this.model.life ? LIFE : 0);
    return low + ((bottom - y) / Math.max(bottom - top, 1)) * (high - low);
  }

  /** What of the picture is under the pointer. @param {ReturnType<Layers["at"] | Polygons["at"]>} matches */
  #point(matches) {
    const { by } = this.model.state;
    if (matches && "record" in matches && matches.record !== null) {
      this.model.point({ record: matches.record, texts: {} });
    } else if (matches && "layer" in matches && matches.layer?.kind === "group") {
      this.model.point({ record: null, texts: { [by]: matches.layer.key } });
    } else this.model.point(null);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {Wishes} wishes
   */
  #click(x, y, wishes) {
    const { viewport } = this.model;
    if (x < LEFT || x > LEFT + this.#width) return;
    if (this.model.state.draw === "buffers") {
      const layer = this.polygons.at(viewport.time(x - LEFT, this.#width), this.#value(y));
      if (layer && layer.record !== null) {
        wishes.chooseBuffer(layer.record, layer.moment);
        return;
      }
    }
    const nearest = this.#nearest(x, y);
    if (!nearest) return;
    const from = Math.floor(viewport.time(x - LEFT - 0.5, this.#width));
    const to = Math.ceil(viewport.time(x - LEFT + 0.5, this.#width));
    wishes.choose(Math.max(from, viewport.first), Math.min(Math.max(to, from + 1), viewport.last),
      nearest);
  }

  /**
   * The allocator whose curve is nearest; the chosen one of equals.
   * @param {number} x
   * @param {number} y
   */
  #nearest(x, y) {
    const { viewport, shown, allocator } = this.model;
    const [low, high] = this.#heights();
    const frame = { top: STRIP + 8, bottom: this.surface.height - AXIS - (this.model.life ? LIFE : 0),
      low, high };
    const at = viewport.time(x - LEFT, this.#width);
    let chosen = allocator && shown.includes(allocator) ? allocator.name : shown[0]?.name ?? null;
    let least = Infinity;
    for (const { name } of shown) {
      const value = valueAt(this.#best, name, at) ?? valueAt(this.model.whole, name, at);
      if (!value) continue;
      const whole = /** @type {import("./frame.js").Frame} */ (frame);
      const above = yOf(whole, value.high), below = yOf(whole, value.low);
      const away = y < above ? above - y : y > below ? y - below : 0;
      if (away < least - (name === allocator?.name ? 0 : 2)) {
        least = away;
        chosen = name;
      }
    }
    return chosen;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    const { viewport, shown, steps } = this.model;
    if (x < LEFT || x > LEFT + this.#width) {
      this.#pointer = null;
      hideTip();
      return;
    }
    const at = viewport.time(x - LEFT, this.#width);
    this.#pointer = at;
    const step = steps?.at(at), box = this.canvas.getBoundingClientRect();
    const layer = this.#picture?.at(at, this.#value(y)) ?? null;
    this.#point(layer);
    if (layer) {
      showTip(box.left + x, box.top + y, layer.lines);
      return;
    }
    const lines = [`${time(at, 7)}${step ? ` in step ${step.name || step.step_id}` : ""}`];
    for (const { name, label } of shown) {
      const value = valueAt(this.#best, name, at) ?? valueAt(this.model.whole, name, at);
      const head = shown.length > 1 ? `${label}: ` : "";
      if (!value) lines.push(`${head}no record yet`);
      else if (value.low === value.high) lines.push(`${head}${bytes(value.last)} in use`);
      else lines.push(head + worded(WORDING.chart.pixel, { low: bytes(value.low), high: bytes(value.high) }));
    }
    lines.push(WORDING.chart.click);
    showTip(box.left + x, box.top + y, lines);
  }

}

/**
 * @param {number} capacity
 * @param {number} peak
 */
export function isNear(capacity, peak) {
  return peak >= NEAR * capacity;
}

/** Pixels left and right of the curves. */
export const GUTTERS = { left: LEFT, right: RIGHT };
