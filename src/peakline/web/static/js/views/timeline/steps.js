/** The steps: a band above the lanes, so many as there are pixels, and following one of them. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { count, counted, time } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { askTimeline } from "./ask.js";
import { Band } from "./bands.js";
import { nameOf, StepList } from "./step_list.js";
import { WORDING } from "../../core/wording.js";

const ROW_PX = 15;
const MOST_ROWS = 8;
const TEXT_FROM = 30;
const MARKS = 80;
/** So much beside the viewport is read with it, as a share of it. */
const MARGIN = 0.5;
const FIRST_PX = 1000;
const MOST_PX = 8192;

/** @typedef {import("./bands.js").Shared} Shared */
/**
 * A step on a device; times in ps. `row` is the place of its device among all.
 * @typedef {{row: number, step_id: number, name: string, device: string | null, start_ps: number, end_ps: number, wall_ps: number, is_cut_off: boolean}} Step
 */
/** A step, or `count` short ones beside each other, of which it is the longest. @typedef {Step & {place: number, count: number}} Item */
/** What is drawn of a stretch: by row, each by begin. @typedef {{from: number, to: number, width: number, isWhole: boolean, rows: Item[][]}} Piece */

export class Steps {
  /** @type {Piece | null} */
  #piece = null;
  #asking = false;
  /** @type {(string | null)[]} in the order of the rows */
  #devices = [];
  /** @type {Step | null} */
  chosen = null;
  /** How many there are, of all devices. */
  count = 0;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Shared} shared
   * @param {(step: Step) => void} follow
   */
  constructor(context, shared, follow) {
    this.context = context;
    this.shared = shared;
    this.band = new Band(shared, {
      name: "steps", label: "Steps", height: ROW_PX + 3, title: ["Steps"],
      click: (x, y) => {
        const step = this.#at(x, y);
        if (step) follow(step);
      },
      hover: (x, y) => this.#hover(x, y),
    });
    this.band.element.hidden = true;
    this.list = new StepList(context, { follow, isChosen: (step) => this.#isChosen(step) });
    this.element = this.list.element;
    /** @type {Promise<void>} */
    this.ready = new Promise((resolve) => void (this.markReady = resolve));
  }

  markReady = () => {};

  /** Read what the band shows of everything, and how many steps there are. */
  async load() {
    const { first, last } = this.shared.viewport;
    try {
      const data = await this.#read(first, last, this.band.surface.width || FIRST_PX);
      this.#take(data);
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.element, failed(error, () => {
        fill(this.element, loading("Looking for steps"));
        void this.load();
      }));
    }
    this.markReady();
    this.shared.changed();
  }

  /** @param {Record<string, any>} data */
  #take(data) {
    this.#devices = data["device_name"];
    this.count = data["total"];
    this.list.setDevices(this.#devices, this.count);
    this.band.element.hidden = !this.count;
    this.band.setHeight(Math.min(this.#devices.length, MOST_ROWS) * ROW_PX + 3);
    const many = this.#devices.length;
    this.band.setLabel(`${counted(this.count, "step")}${many > 1 ? ` of ${many} devices` : ""}`);
    fill(this.band.title, many > 1
      ? h("span", { title: this.#devices.map((one) => one ?? "host").join("\n") }, `Steps of ${many} devices`)
      : "Steps");
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {number} width
   */
  async #read(from, to, width) {
    const data = await askTimeline(this.context,
      { view: "steps", start_ps: from, end_ps: to, width, rows: MOST_ROWS });
    this.#piece = pieceOf(data, from, to, width);
    const { first, last } = this.shared.viewport;
    this.#piece.isWhole = from <= first && to >= last && this.#piece.rows.every((row) =>
      row.every(({ count: many }) => many === 1));
    return data;
  }

  /** Read what is in view more finely, where that has more to show. */
  async #refine() {
    const { viewport } = this.shared, { width } = this.band.surface, piece = this.#piece;
    if (!width || !piece || piece.isWhole || this.#asking) return;
    const covers = piece.from <= viewport.from && piece.to >= viewport.to;
    if (covers && (piece.to - piece.from) / piece.width <= (viewport.span / width) * 1.01) return;
    this.#asking = true;
    const from = Math.max(viewport.first, Math.floor(viewport.from - MARGIN * viewport.span));
    const to = Math.min(viewport.last, Math.ceil(viewport.to + MARGIN * viewport.span));
    try {
      await this.#read(from, to, Math.min(MOST_PX, Math.ceil((width * (to - from)) / viewport.span)));
      this.shared.changed();
    } catch (error) {
      // What is drawn is coarser, and right.
      if (!isAbort(error)) piece.isWhole = true;
    } finally {
      this.#asking = false;
    }
  }

  /**
   * The step that an address names: its id, its id and its device's place (`3.1`), or its name.
   * @param {string} text
   * @param {string | null} [device]
   * @returns {Promise<Step | null>}
   */
  async find(text, device = null) {
    const [, id = "", row = ""] = /^(\d+)\.(\d+)$/.exec(text) ?? [];
    const own = id ? await this.#ask({ step: id, device: this.#devices[Number(row)] ?? null }) : null;
    return this.#stepOf(own ?? await this.#ask({ step: text, device: device ?? this.#devices[0] ?? null }));
  }

  /** What an address calls a step. @param {Step} step */
  key(step) {
    return step.row ? `${step.step_id}.${step.row}` : String(step.step_id);
  }

  /** @param {Step | null} step */
  choose(step) {
    this.chosen = step;
    this.list.reveal();
    this.shared.changed();
  }

  /**
   * The step after or before the chosen one, or the one nearest to the middle of what is shown.
   * @param {1 | -1} direction
   * @returns {Promise<Step | null>}
   */
  async neighbour(direction) {
    const { chosen } = this, { from, to } = this.shared.viewport;
    if (!chosen) return this.#stepOf(await this.#ask({ at_ps: Math.round((from + to) / 2), device: this.#devices[0] ?? null }));
    const own = await this.#ask({ step: String(chosen.step_id), device: chosen.device });
    return this.#stepOf(own?.[direction > 0 ? "next" : "previous"] ?? null);
  }

  /** @param {Record<string, string | number | null>} query */
  async #ask(query) {
    const data = await askTimeline(this.context, { view: "steps", width: 1, rows: 1, ...query });
    return data["found"];
  }

  /** @param {any} result @returns {Step | null} */
  #stepOf(result) {
    return result && { ...result, row: Math.max(0, this.#devices.indexOf(result.device)) };
  }

  /** @param {Step} step */
  #isChosen({ step_id: id, device }) {
    return this.chosen !== null && this.chosen.step_id === id && this.chosen.device === device;
  }

  /** Times of faint lines down all lanes: where the steps in view begin, unless they are many. */
  marks() {
    const { viewport } = this.shared;
    const seen = [];
    const items = this.#piece?.rows[0] ?? [];
    for (let place = lowerBound(items, viewport.from); place < items.length; place++) {
      const item = /** @type {Item} */ (items[place]);
      if (item.start_ps > viewport.to) break;
      if (item.count > 1 || seen.push(item.start_ps) > MARKS) return [];
    }
    return seen;
  }

  /** @param {boolean} mayAsk not while the lanes wait for an answer: they come first */
  draw(mayAsk) {
    const context = this.band.surface.begin();
    if (!context) return;
    if (mayAsk) void this.#refine();
    this.#piece?.rows.forEach((items, row) => {
      for (let place = lowerBound(items, this.shared.viewport.from); place < items.length; place++) {
        const item = /** @type {Item} */ (items[place]);
        if (item.start_ps > this.shared.viewport.to) break;
        this.#drawOne(context, item, row, item.count > 1 ? 0.45 : item.place % 2 ? 0.35 : 0.55);
      }
    });
    if (this.chosen && this.chosen.row < MOST_ROWS) this.#drawOne(context, this.chosen, this.chosen.row, 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Step | Item} step
   * @param {number} row
   * @param {number} alpha 1: the chosen one
   */
  #drawOne(context, step, row, alpha) {
    const { viewport } = this.shared, { width } = this.band.surface, colors = palette();
    const top = 1 + row * ROW_PX, isChosen = alpha === 1;
    const left = Math.max(-2, viewport.x(step.start_ps, width));
    const right = Math.min(width + 2, Math.max(viewport.x(step.end_ps, width), left + 1));
    if (right < 0 || left > width) return;
    const many = "count" in step ? step.count : 1;
    if (isChosen) {
      context.fillStyle = colors["panel"] ?? "";
      context.fillRect(left, top, Math.max(1, right - left - 1), ROW_PX - 2);
    }
    context.fillStyle = (isChosen ? colors["accent"] : colors["series-8"]) ?? "";
    context.globalAlpha = alpha;
    context.fillRect(left, top, Math.max(1, right - left - (many > 1 ? 0 : 1)), ROW_PX - 2);
    context.globalAlpha = 1;
    if (right - left < TEXT_FROM) return;
    context.fillStyle = (isChosen ? colors["panel"] : colors["text"]) ?? "";
    const begin = Math.max(left, 0) + 4, room = Math.min(right, width) - begin - 4;
    const texts = many > 1 ? [counted(many, "step")] : [`${step.name} · ${time(step.wall_ps)}`, step.name];
    const shown = texts.find((one) => context.measureText(one).width <= room);
    if (shown) context.fillText(shown, begin, top + ROW_PX / 2 - 0.5);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #at(x, y) {
    const { viewport } = this.shared;
    const items = this.#piece?.rows[Math.floor((y - 1) / ROW_PX)] ?? [];
    const at = viewport.time(x, this.band.surface.width);
    const reach = (2 * viewport.span) / Math.max(1, this.band.surface.width);
    const item = items[lowerBound(items, at - reach)];
    return item && item.start_ps <= at + reach ? item : null;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    const step = this.#at(x, y);
    if (!step) {
      hideTip();
      return;
    }
    const device = step.device ? [step.device] : [];
    showTip(...this.band.place(x, y), step.count > 1
      ? [`${count(step.count)} steps`, ...device, `the longest: ${nameOf(step)}, ${time(step.wall_ps, 5)}`,
        WORDING.timeline.follow_one]
      : [`Step ${nameOf(step)}`, ...device, time(step.wall_ps, 5), `begins at ${time(step.start_ps, 7)}`,
        WORDING.timeline.follow]);
  }

  destroy() {
    this.band.destroy();
  }
}

/**
 * @param {Record<string, any>} data
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @returns {Piece}
 */
function pieceOf(data, from, to, width) {
  /** @type {(string | null)[]} */
  const devices = data["device_name"];
  /** @type {Item[][]} */
  const rows = devices.slice(0, MOST_ROWS).map(() => []);
  data["begin_ps"].forEach((/** @type {number} */ begin, /** @type {number} */ at) => {
    const row = data["device"][at], start = from + begin, wall = data["duration_ps"][at];
    rows[row]?.push({ row, step_id: Number(data["step_id"][at]), name: data["step_name"][at],
      device: devices[row] ?? null, start_ps: start, end_ps: start + wall,
      wall_ps: data["longest_ps"][at], is_cut_off: data["is_cut_off"][at] === 1,
      place: data["place"][at], count: data["count"][at] });
  });
  return { from, to, width, isWhole: false, rows };
}

/**
 * The first item that ends after `time`.
 * @param {Item[]} items
 * @param {number} time
 */
function lowerBound(items, time) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((/** @type {Item} */ (items[middle])).end_ps <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
