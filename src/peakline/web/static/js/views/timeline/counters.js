/** Memory in use and the file's other counters over time, each a small chart. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { bytes, worded } from "../../core/format.js";
import { palette, SERIES } from "../../core/theme.js";
import { showTip } from "../../core/tooltip.js";
import { askTimeline } from "./ask.js";
import { Band } from "./bands.js";
import { WORDING } from "../../core/wording.js";

const HEIGHT = 46;
const MARGIN = 0.5;
const MEMORY = "memory in use";
const MOST_SHOWN = 24;

/** @typedef {import("./bands.js").Shared} Shared */
/** @typedef {{number: number, group: string, name: string, band: Band}} Counter */
/** @typedef {{from: number, to: number, width: number, low: ArrayLike<any>, high: ArrayLike<any>, last: ArrayLike<any>, place: Map<number, number>}} Piece */

export class Counters {
  /** @type {Counter[]} */
  #counters = [];
  /** @type {Piece | null} */
  #piece = null;
  #asking = false;
  /** @type {unknown} */
  #error = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Shared} shared
   */
  constructor(context, shared) {
    this.context = context;
    this.shared = shared;
    this.element = h("div", { class: "tl-counters", hidden: true });
    this.isShown = true;
    this.isAsked = false;
    this.isReady = false;
  }

  /** Find out which counters there are; the first question reads the allocators' records. */
  async load() {
    this.isAsked = true;
    try {
      const answer = await askTimeline(this.context, { view: "counter", width: 1 });
      this.#list(answer["counter_group"], answer["counter_name"], answer["counter_values"]);
    } catch (error) {
      if (isAbort(error)) return;
      this.#error = error;
      fill(this.element, h("p", { class: "quiet tl-note" },
        `Counters cannot be shown: ${error instanceof Error ? error.message : error}`));
    }
    this.isReady = true;
    this.show(this.isShown);
    this.shared.changed();
  }

  /** How many charts there are. */
  get count() {
    return this.#counters.length;
  }

  /** Whether there is something to show, if only why not. */
  get isThere() {
    return this.count > 0 || this.#error !== null;
  }

  /** @param {boolean} isShown */
  show(isShown) {
    this.isShown = isShown;
    this.element.hidden = !isShown || !this.isReady || !this.isThere;
  }

  /**
   * @param {string[]} groups
   * @param {string[]} names
   * @param {ArrayLike<any>} values
   */
  #list(groups, names, values) {
    const numbers = names.map((_, number) => number).filter((number) => values[number] > 0);
    const isMemory = (/** @type {number} */ number) => groups[number] === MEMORY;
    numbers.sort((one, other) => Number(isMemory(other)) - Number(isMemory(one)) || one - other);
    this.#counters = numbers.slice(0, MOST_SHOWN).map((number) => {
      const group = groups[number] ?? "", name = names[number] ?? "";
      const title = isMemory(number) ? `Memory: ${name}` : name;
      const band = new Band(this.shared, {
        name: "counter", label: `${title} over time`, height: HEIGHT,
        title: [h("span", { class: "name", title: `${title}${isMemory(number) ? "" : ` (${group})`}` },
          title), h("span", { class: "value quiet" })],
        hover: (x, y) => this.#hover(number, x, y),
      });
      return { number, group, name, band };
    });
    const left = numbers.length - this.#counters.length;
    fill(this.element, this.#counters.map(({ band }) => band.element),
      left > 0 && h("p", { class: "quiet tl-note" }, worded(WORDING.timeline.more_counters, { more: left })));
  }

  /**
   * Draw what is there, and ask for what is better.
   * @param {boolean} mayAsk not while the lanes wait for an answer: they come first
   */
  draw(mayAsk) {
    if (this.element.hidden) return;
    const { viewport } = this.shared;
    this.#counters.forEach((counter, place) => this.#drawOne(counter, place));
    const width = this.#counters[0]?.band.surface.width ?? 0;
    if (!mayAsk || !width || this.#asking || this.#error) return;
    const piece = this.#piece;
    const isGood = piece && piece.from <= viewport.from && piece.to >= viewport.to
      && (piece.to - piece.from) / piece.width <= (viewport.span / width) * 1.01;
    if (!isGood) void this.#ask(width);
  }

  /** @param {number} width */
  async #ask(width) {
    const { viewport } = this.shared;
    this.#asking = true;
    const from = Math.max(viewport.first, Math.floor(viewport.from - MARGIN * viewport.span));
    const to = Math.min(viewport.last, Math.ceil(viewport.to + MARGIN * viewport.span));
    const pixels = Math.ceil((width * (to - from)) / viewport.span);
    try {
      const answer = await askTimeline(this.context, {
        view: "counter", start_ps: from, end_ps: to, width: pixels,
        lines: this.#counters.map(({ number }) => number).sort((a, b) => a - b).join(","),
      });
      const place = new Map(Array.from(answer["counter"], (number, at) =>
        [/** @type {number} */ (number), at]));
      this.#piece = { from, to, width: pixels, low: answer["low"], high: answer["high"],
        last: answer["last"], place };
    } catch (error) {
      if (!isAbort(error)) this.#error = error;
    } finally {
      this.#asking = false;
      this.shared.changed();
    }
  }

  /**
   * @param {Counter} counter
   * @param {number} place
   */
  #drawOne({ number, group, name, band }, place) {
    const context = band.surface.begin();
    const piece = this.#piece;
    const at = piece?.place.get(number);
    if (!context || !piece || at === undefined) return;
    const { viewport } = this.shared;
    const { width, height } = band.surface;
    const colors = palette();
    const each = (piece.to - piece.from) / piece.width, first = at * piece.width;
    const begin = Math.max(0, Math.floor((viewport.from - piece.from) / each));
    const end = Math.min(piece.width, Math.ceil((viewport.to - piece.from) / each));
    let most = 0, least = 0;
    for (let pixel = begin; pixel < end; pixel++) {
      const high = piece.high[first + pixel], low = piece.low[first + pixel];
      if (high > most) most = high;
      if (low < least) least = low;
    }
    const value = /** @type {HTMLElement} */ (band.title.lastElementChild);
    const rangeText = `up to ${amount(group, most)}`;
    if (value.textContent !== rangeText) {
      value.textContent = rangeText;
      band.setLabel(worded(WORDING.timeline.counter, { name, range: rangeText }));
    }
    const range = most - least || 1;
    const y = (/** @type {number} */ one) => height - 1 - ((one - least) / range) * (height - 6);
    const color = colors[`series-${(place % SERIES) + 1}`] ?? "";
    context.fillStyle = color;
    for (let pixel = begin; pixel < end; pixel++) {
      const high = piece.high[first + pixel], low = piece.low[first + pixel];
      if (Number.isNaN(high)) continue;
      // On whole pixels, so that neither gaps nor overlaps show.
      const x = Math.round(viewport.x(piece.from + pixel * each, width));
      const next = Math.round(viewport.x(piece.from + (pixel + 1) * each, width));
      const tall = y(high), base = y(0), wide = Math.max(1, next - x);
      context.globalAlpha = 0.35;
      context.fillRect(x, tall, wide, base - tall);
      context.globalAlpha = 1;
      context.fillRect(x, tall, wide, Math.max(1.5, y(low) - tall));
    }
    context.fillStyle = colors["line"] ?? "";
    context.fillRect(0, y(0), width, 1);
  }

  /**
   * What is drawn in view, a row for each pixel of a counter.
   * @returns {import("../../core/exporting.js").Rows}
   */
  rows() {
    const columns = ["group", "counter", "start_ps", "low", "high", "last"], piece = this.#piece;
    if (!piece) return { columns, rows: [] };
    const { viewport } = this.shared, each = (piece.to - piece.from) / piece.width;
    const begin = Math.max(0, Math.floor((viewport.from - piece.from) / each));
    const end = Math.min(piece.width, Math.ceil((viewport.to - piece.from) / each));
    const rows = this.#counters.flatMap(({ number, group, name }) => {
      const at = piece.place.get(number);
      return at === undefined ? [] : Array.from({ length: end - begin }, (_, place) => {
        const pixel = at * piece.width + begin + place;
        return [group, name, Math.round(piece.from + (begin + place) * each), piece.low[pixel], piece.high[pixel],
          piece.last[pixel]];
      }).filter((row) => !Number.isNaN(row[4]));
    });
    return { columns, rows };
  }

  /**
   * @param {number} number
   * @param {number} x
   * @param {number} y
   */
  #hover(number, x, y) {
    const counter = this.#counters.find((one) => one.number === number);
    const piece = this.#piece, at = piece?.place.get(number);
    if (!counter || !piece || at === undefined) return;
    const moment = this.shared.viewport.time(x, counter.band.surface.width);
    const pixel = Math.floor(((moment - piece.from) / (piece.to - piece.from)) * piece.width);
    const place = at * piece.width + pixel;
    if (pixel < 0 || pixel >= piece.width || Number.isNaN(piece.high[place])) return;
    const low = amount(counter.group, piece.low[place]), high = amount(counter.group, piece.high[place]);
    showTip(...counter.band.place(x, y), [counter.name,
      low === high ? low : `${low} to ${high}`]);
  }

  destroy() {
    for (const { band } of this.#counters) band.destroy();
  }
}

/**
 * @param {string} group
 * @param {number} value
 */
function amount(group, value) {
  return group === MEMORY ? bytes(value) : Number(value.toPrecision(6)).toLocaleString("en-US");
}
