/** Flags with notes at moments, and the marked range's length: a band, a list, and the address. */

import { announce, fill, h } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { palette } from "../../core/theme.js";
import { empty } from "../../core/states.js";
import { Band } from "./bands.js";

const MOST = 30;
const LONGEST = 120;
const HEIGHT = 18;
const REACH_PX = 8;

/** @typedef {{at: number, text: string}} Flag */

/**
 * Flags of an address: `12_first|34_second`, texts escaped.
 * @param {string} text
 * @returns {Flag[]} in order of time
 */
export function parseFlags(text) {
  const flags = text.split("|").slice(0, MOST).flatMap((part) => {
    const match = /^(-?\d{1,18})_(.*)$/s.exec(part);
    if (!match) return [];
    try {
      return [{ at: Number(match[1]), text: decodeURIComponent(match[2] ?? "").slice(0, LONGEST) }];
    } catch {
      // What somebody cut off in the middle of an escape.
      return [{ at: Number(match[1]), text: "" }];
    }
  });
  return flags.sort((one, other) => one.at - other.at);
}

/** @param {Flag[]} flags */
export function formatFlags(flags) {
  return flags.map(({ at, text }) => `${Math.round(at)}_${encodeURIComponent(text)}`).join("|");
}

export class Flags {
  /** @type {Flag[]} */
  list = [];
  /** @type {Flag | null} the one that is dragged */
  #dragged = null;

  /**
   * @param {import("./bands.js").Shared} shared
   * @param {{changed: (text: string) => void, onTitle: (title: string) => void,
   *   range: () => {from: number | null, to: number | null}}} options
   */
  constructor(shared, options) {
    this.shared = shared;
    this.options = options;
    this.band = new Band(shared, { name: "flags", label: "Flags and the marked range", height: HEIGHT,
      title: ["Marks"], still: true });
    this.element = h("div", { class: "tl-fill tl-scroll" });
    const { canvas } = this.band.surface;
    canvas.addEventListener("pointerdown", (event) => {
      this.#dragged = this.#near(event.offsetX);
      if (this.#dragged) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.#dragged) {
        canvas.style.cursor = this.#near(event.offsetX) ? "ew-resize" : "";
        return;
      }
      this.#dragged.at = Math.round(shared.viewport.time(event.offsetX, this.band.surface.width));
      shared.changed();
    });
    canvas.addEventListener("pointerup", () => {
      if (this.#dragged) this.#notify();
      this.#dragged = null;
    });
    canvas.addEventListener("pointercancel", () => void (this.#dragged = null));
    this.#fill();
  }

  /** Take what an address says. @param {string} text */
  set(text) {
    if (text === formatFlags(this.list)) return;
    this.list = parseFlags(text);
    this.#fill();
  }

  /**
   * Set one, and let the reader write what it is about.
   * @param {number} at
   * @param {string} [text]
   */
  add(at, text = "") {
    if (this.list.length >= MOST) {
      announce(`there are ${MOST} flags already`);
      return;
    }
    const flag = { at: Math.round(at), text: text.slice(0, LONGEST) };
    this.list = [...this.list, flag].sort((one, other) => one.at - other.at);
    this.#notify();
    this.#field(this.list.indexOf(flag))?.select();
    announce(`flag at ${time(flag.at, 7)}`);
  }

  /** @param {number} place */
  #field(place) {
    return this.element.querySelectorAll("input")[place];
  }

  #notify() {
    this.list.sort((one, other) => one.at - other.at);
    this.options.changed(formatFlags(this.list));
    this.#fill();
    this.shared.changed();
  }

  #fill() {
    this.options.onTitle(this.list.length ? `Notes (${this.list.length})` : "Notes");
    fill(this.element, this.list.length ? h("ul", { class: "tl-notes" }, ...this.list.map((flag, place) => this.#row(flag, place)))
      : empty("No notes", "Press b, or Flag above: it is set at the chosen event, or where the pointer is. "
        + "Notes are in the address alone: a copied link has them."));
  }

  /**
   * @param {Flag} flag
   * @param {number} place
   */
  #row(flag, place) {
    const { viewport } = this.shared;
    const name = `flag ${place + 1}`;
    return h("li", { class: "row-of" },
      h("button", { type: "button", class: "tl-link number", title: "shows it; ← → move it, Delete removes it",
        "aria-label": `${name} at ${time(flag.at, 7)}: show it`, onclick: () =>
          viewport.show(flag.at - viewport.span / 2, flag.at + viewport.span / 2),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (by === undefined && event.key !== "Delete") return;
          event.preventDefault();
          event.stopPropagation();
          if (by === undefined) this.#remove(flag);
          else {
            const pixel = viewport.span / Math.max(1, this.band.surface.width);
            flag.at = Math.round(flag.at + by * Math.max(1, pixel * (event.shiftKey ? 10 : 1)));
            this.#notify();
            /** @type {HTMLElement | undefined} */ (this.element.querySelectorAll("button.number")[this.list.indexOf(flag)])?.focus();
            announce(time(flag.at, 7));
          }
        } }, time(flag.at, 7)),
      h("input", { type: "text", class: "grow", value: flag.text, maxlength: LONGEST, placeholder: "note",
        "aria-label": `Note of ${name}`, oninput: (/** @type {Event} */ event) => {
          flag.text = /** @type {HTMLInputElement} */ (event.target).value;
          this.options.changed(formatFlags(this.list));
          this.shared.changed();
        } }),
      h("button", { type: "button", "aria-label": `Remove ${name}`, onclick: () => this.#remove(flag) }, "×"));
  }

  /** @param {Flag} flag */
  #remove(flag) {
    this.list = this.list.filter((one) => one !== flag);
    this.#notify();
    announce("removed");
  }

  /** @param {number} x */
  #near(x) {
    const { viewport } = this.shared, { width } = this.band.surface;
    let best = null, least = REACH_PX;
    for (const flag of this.list) {
      const away = Math.abs(viewport.x(flag.at, width) - x);
      if (away <= least) [best, least] = [flag, away];
    }
    return best;
  }

  draw() {
    const { from, to } = this.options.range();
    this.band.element.hidden = !this.list.length && from === null;
    const context = this.band.element.hidden ? null : this.band.surface.begin();
    if (!context) return;
    const { viewport } = this.shared, { width } = this.band.surface;
    const colors = palette();
    /** @type {[number, number][]} what texts take, so that none covers another */
    const taken = [];
    const write = (/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ room) => {
      const long = context.measureText(text).width;
      const letters = long <= room ? text.length : Math.floor((text.length * room) / long) - 1;
      if (letters < 2) return;
      const shown = letters < text.length ? `${text.slice(0, letters)}…` : text;
      const end = x + context.measureText(shown).width;
      if (taken.some(([begin, stop]) => x < stop && end > begin)) return;
      taken.push([x, end]);
      context.fillText(shown, x, HEIGHT / 2);
    };
    const xs = this.list.map(({ at }) => viewport.x(at, width));
    this.list.forEach((flag, place) => {
      const x = Math.round(xs[place] ?? 0);
      if (x < -2 || x > width + 2) return;
      context.fillStyle = colors["warn"] ?? "";
      context.fillRect(x, 2, 1.5, HEIGHT - 2);
      context.beginPath();
      context.moveTo(x, 2);
      context.lineTo(x + 8, 5.5);
      context.lineTo(x, 9);
      context.fill();
      context.fillStyle = colors["text"] ?? "";
      write(flag.text, x + 11, Math.min(width, xs[place + 1] ?? width) - x - 15);
    });
    if (from === null || to === null) return;
    const left = Math.max(0, viewport.x(from, width)), right = Math.min(width, viewport.x(to, width));
    if (right < 0 || left > width) return;
    context.fillStyle = colors["accent"] ?? "";
    context.fillRect(left, HEIGHT - 3, Math.max(1, right - left), 2);
    const text = time(to - from, 5), long = context.measureText(text).width;
    write(text, Math.max(2, Math.min((left + right - long) / 2, width - long - 2)), width);
  }

  destroy() {
    this.band.destroy();
  }
}
