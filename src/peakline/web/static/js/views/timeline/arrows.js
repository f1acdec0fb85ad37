/** Arrows between events: of the chosen one, or of all in view where these are few. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { counted, time, worded } from "../../core/format.js";
import { askTimeline } from "./ask.js";
import { ROW_PX } from "./layout.js";
import { WORDING } from "../../core/wording.js";

const REST_MS = 250;
const HEAD_PX = 6;
const LISTED = 40;
/** What kinds of arrows are said to do; others are names of the file. @type {Record<string, string>} */
const TEXTS = WORDING.timeline.links;

/** @typedef {import("./chosen.js").Named} Named */
/** @typedef {{kind: string, from: Named, to: Named}} Arrow */

export class Arrows {
  /** @type {Arrow[]} of the chosen event */
  #own = [];
  /** @type {Arrow[]} */
  #seen = [];
  #event = -1;
  /** Whether those of all events in view are shown. */
  isShown = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting;
  #requested = "";
  /** What is to be said of those in view. */
  note = "";

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {{go: (event: Named) => void, changed: () => void}} options
   */
  constructor(context, options) {
    this.context = context;
    this.options = options;
    this.element = h("section", { "aria-label": "Arrows" });
    context.signal.addEventListener("abort", () => clearTimeout(this.#resting));
  }

  /** Look for those of an event. @param {number | null} event */
  async choose(event) {
    if (event === this.#event) return;
    this.#event = event ?? -1;
    this.#own = [];
    fill(this.element);
    if (event === null) return;
    try {
      const result = await this.#ask({ event });
      if (this.#event !== event) return;
      this.#own = result.arrows;
      // What the others have of the same collective is drawn too.
      const others = this.#own.filter(({ from, to }) => from.event !== event && to.event !== event).length;
      this.#list(event, result.total - others);
      this.options.changed();
    } catch (error) {
      if (!isAbort(error) && this.#event === event) {
        fill(this.element, h("p", { class: "quiet" }, `Arrows could not be read: ${error}`));
      }
    }
  }

  /** The next event along an arrow of the chosen one; back along one that ends at it. @param {1 | -1} way */
  next(way) {
    const own = this.#event;
    const arrow = this.#own.find(({ from, to }) => (way > 0 ? from : to).event === own);
    return arrow ? (way > 0 ? arrow.to : arrow.from) : null;
  }

  /**
   * What is in view; asks for its arrows once that rests.
   * @param {number} from
   * @param {number} to
   */
  want(from, to) {
    const key = `${from} ${to}`;
    if (!this.isShown || key === this.#requested) return;
    this.#requested = key;
    clearTimeout(this.#resting);
    this.#resting = setTimeout(async () => {
      try {
        const results = await this.#ask({ start_ps: from, end_ps: to });
        if (this.#requested !== key) return;
        const isAll = results.total === results.arrows.length;
        this.#seen = isAll ? results.arrows : [];
        this.note = isAll ? counted(results.total, "arrow")
          : results.total < 0 ? WORDING.timeline.too_many_arrows
          : worded(WORDING.timeline.arrows, { arrows: counted(results.total, "arrow") });
        this.options.changed();
      } catch (error) {
        if (!isAbort(error)) this.note = WORDING.timeline.no_arrows;
      }
    }, REST_MS);
  }

  /** @param {boolean} isShown */
  show(isShown) {
    this.isShown = isShown;
    this.#seen = [];
    this.#requested = this.note = "";
    this.options.changed();
  }

  /** @param {Record<string, number>} query */
  async #ask(query) {
    const data = await askTimeline(this.context, { view: "arrows", ...query });
    /** @type {Arrow[]} */
    const arrows = data["kind"].map((/** @type {string} */ kind, /** @type {number} */ place) =>
      ({ kind, from: data["from"][place], to: data["to"][place] }));
    return { arrows, total: Number(data["total"]) };
  }

  /**
   * @param {number} event
   * @param {number} total
   */
  #list(event, total) {
    if (total <= 0) return;
    const item = (/** @type {Arrow} */ { kind, from, to }) => {
      const isOut = from.event === event, other = isOut ? to : from;
      const apart = to.start_ps - from.start_ps;
      return h("li", {}, isOut ? `${TEXTS[kind] ?? `${kind}:`} ` : `${kind} from `,
        h("button", { type: "button", class: "tl-link", onclick: () => this.options.go(other) },
          other.name || "(no name)"),
        h("span", { class: "quiet" }, ` ${time(Math.abs(apart))} ${apart < 0 === isOut ? "before" : "later"}`));
    };
    fill(this.element, h("h4", {}, `${counted(total, "arrow")} ( , . )`),
      h("ul", { class: "tl-list" }, ...this.#own.filter(({ from, to }) => from.event === event || to.event === event)
        .slice(0, LISTED).map(item)),
      total > LISTED && h("p", { class: "quiet" }, `and ${total - LISTED} more`));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{layout: import("./layout.js").Layout, viewport: import("../../core/viewport.js").Viewport}} place
   * @param {number} scroll
   * @param {{width: number, height: number}} surface
   * @param {Record<string, string>} colors
   */
  draw(context, { layout, viewport }, scroll, { width, height }, colors) {
    const end = (/** @type {Named} */ { line, row, start_ps: start, duration_ps: duration }, /** @type {boolean} */ isFrom) => {
      const top = layout.topOf(line, row);
      if (top === null) return null;
      // From the end of what causes it, unless that still runs then.
      const time = isFrom ? start + duration : start;
      return { x: viewport.x(time, width), y: top - scroll + ROW_PX / 2 };
    };
    /** @param {Arrow} arrow @param {string} color @param {number} alpha */
    const one = ({ from, to }, color, alpha) => {
      const isLate = from.start_ps + from.duration_ps <= to.start_ps;
      const begin = end(from, isLate), stop = end(to, false);
      if (!begin || !stop) return;
      if (Math.max(begin.x, stop.x) < 0 || Math.min(begin.x, stop.x) > width) return;
      if (Math.max(begin.y, stop.y) < 0 || Math.min(begin.y, stop.y) > height) return;
      const bend = Math.max(14, Math.min(80, Math.abs(stop.x - begin.x) / 2));
      context.globalAlpha = alpha;
      context.strokeStyle = context.fillStyle = color;
      context.beginPath();
      context.moveTo(begin.x, begin.y);
      context.bezierCurveTo(begin.x + bend, begin.y, stop.x - bend, stop.y, stop.x - HEAD_PX, stop.y);
      context.stroke();
      context.beginPath();
      context.moveTo(stop.x, stop.y);
      context.lineTo(stop.x - HEAD_PX - 1, stop.y - HEAD_PX / 2 - 1);
      context.lineTo(stop.x - HEAD_PX - 1, stop.y + HEAD_PX / 2 + 1);
      context.fill();
      context.globalAlpha = 1;
    };
    context.lineWidth = 1;
    for (const arrow of this.#seen) one(arrow, colors["quiet"] ?? "", 0.55);
    context.lineWidth = 4;
    for (const arrow of this.#own) one(arrow, colors["panel"] ?? "", 0.9);
    context.lineWidth = 2;
    for (const arrow of this.#own) one(arrow, colors["bad"] ?? "", 1);
  }
}
