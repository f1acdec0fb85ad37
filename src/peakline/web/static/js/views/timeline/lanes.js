/** The lanes: lines with their rows of events, on a canvas that scrolls under its labels. */

import { h } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { attachGestures } from "../../core/gestures.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { nameShades } from "./colors.js";
import { Labels } from "./labels.js";
import { ROW_PX } from "./layout.js";
import { drawArea, drawChosen } from "./outlines.js";
import { firstItem, paintTrack, stamp } from "./paint.js";
import { Surface, fitted } from "./surface.js";
import { trackKey } from "./tiles.js";
import { WORDING } from "../../core/wording.js";

const TEXT_FROM = 26;
const INSET = 4;
const REACH_PX = 3;
const TRACKS_AT_A_TIME = 400;

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Entry} Entry */
/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./tiles.js").Want} Want */
/** What is known of an event from the picture, or from its details. @typedef {{event: number, line: number, row: number, start_ps: number, duration_ps: number}} Brief */
/**
 * @typedef {object} LanesOptions
 * @property {Layout} layout
 * @property {import("./tiles.js").Tiles} tiles
 * @property {import("./names.js").Names} names
 * @property {import("./legend.js").Legend} legend
 * @property {import("./tips.js").Tips} tips
 * @property {import("../../core/viewport.js").Viewport} viewport
 * @property {() => void} changed the picture has to be drawn again
 * @property {() => void} scrolled
 * @property {() => void} folded
 * @property {() => void} arranged lines were moved, pinned or hidden
 * @property {(host: string) => void} remove a host from the timeline
 * @property {(event: number | null, brief: import("./chosen.js").Named | null) => void} choose
 * @property {(from: number, to: number, done: boolean, lines: number[] | null) => void} measure
 * @property {() => boolean} measures whether dragging measures
 * @property {import("./range.js").Range} range
 * @property {import("./arrows.js").Arrows} arrows
 * @property {(x: number | null) => void} pointed where the pointer is
 */

export class Lanes {
  /** @type {Brief | null} */
  chosen = null;
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #even = new Uint32Array(1);
  #odd = new Uint32Array(1);
  #colors = palette();
  #shades = nameShades("#ffffff");

  /** @param {LanesOptions} options */
  constructor(options) {
    this.options = options;
    this.surface = new Surface({
      class: "tl-lanes", tabindex: 0, role: "application", "aria-label": "Events",
      "aria-roledescription": "timeline",
    }, options.changed);
    this.labels = new Labels(options.layout, options.folded, options.arranged, options.remove);
    this.space = h("div", { class: "tl-space" }, this.labels.element, this.surface.canvas);
    this.element = h("div", { class: "tl-scroller" }, this.space);
    this.element.addEventListener("scroll", () => {
      hideTip();
      options.scrolled();
    });
    this.ends = attachGestures(this.surface.canvas, {
      viewport: options.viewport, left: () => 0, width: () => this.surface.width,
      click: (x, y) => this.#click(x, y), hover: (x, y) => this.#hover(x, y),
      leave: () => {
        options.tips.hide();
        options.pointed(null);
      },
      scroll: (dy) => void (this.element.scrollTop += dy), measures: options.measures,
      measure: (from, to, done, top, bottom) =>
        options.measure(from, to, done, this.#linesBetween(top, bottom)),
    });
    this.retheme();
  }

  /** Take the colors of the theme. */
  retheme() {
    this.#colors = palette();
    this.#shades = this.options.legend.shades(this.#colors["panel"] || "#ffffff");
  }

  /** What is to be seen now. @returns {Want} */
  want() {
    const { viewport, layout } = this.options;
    const height = this.element.clientHeight, top = this.element.scrollTop;
    const tracks = layout.lines.reduce((sum, line) => sum + line.rows, 0);
    /** @param {Entry[]} entries */
    const linesOf = (entries) => entries.flatMap(({ line }) => (line ? [line.line] : []));
    const seen = layout.between(top, top + height);
    const isSmall = tracks <= TRACKS_AT_A_TIME;
    // Deep lines are asked for in powers of two, so that scrolling down asks seldom.
    const deepest = Math.max(1, ...seen.map((entry) =>
      Math.min(entry.rows, Math.ceil((top + height - entry.top) / ROW_PX))));
    return {
      from: viewport.from, to: viewport.to,
      width: Math.round(this.surface.width * this.surface.ratio),
      lines: isSmall ? null : linesOf(seen),
      more: isSmall ? null : linesOf(layout.between(top - height, top + 2 * height)),
      rows: Math.min(4096, Math.max(64, 2 ** Math.ceil(Math.log2(deepest)))),
    };
  }

  /**
   * Draw everything that is in view.
   * @param {number[]} marks times of faint lines down all lanes
   */
  draw(marks) {
    const { layout, viewport } = this.options;
    this.space.style.height = `${layout.height}px`;
    this.surface.canvas.style.height = `${this.element.clientHeight}px`;
    this.surface.measure();
    this.labels.draw(this.element.scrollTop, this.element.clientHeight);
    const context = this.surface.begin();
    if (!context) return;
    const { ratio, height: seenHeight } = this.surface;
    const width = this.surface.canvas.width, height = this.surface.canvas.height;
    this.#fit(width, height);
    const scroll = this.element.scrollTop;
    const scale = { from: viewport.from, perPs: width / viewport.span, width };
    const tiles = this.options.tiles.best(this.want());
    const { names, legend } = this.options;
    const shades = { ...this.#shades, color: legend.mode === "name" ? names.color : null,
      isDim: names.dim, isOff: legend.off };
    /** @type {{y: number, items: import("./paint.js").Wide[]}[]} */
    const texts = [];
    const entries = layout.between(scroll, scroll + seenHeight);
    for (const entry of entries) {
      if (!entry.line) continue;
      const firstRow = Math.max(0, Math.floor((scroll - entry.top) / ROW_PX));
      const lastRow = Math.min(entry.rows, Math.ceil((scroll + seenHeight - entry.top) / ROW_PX));
      for (let row = firstRow; row < lastRow; row++) {
        const wide = this.#paintRow(tiles, entry.line.line, row, scale, shades);
        if (!wide) continue;
        const y = entry.top + row * ROW_PX - scroll;
        const top = Math.max(0, Math.round(y * ratio));
        const bottom = Math.min(height, Math.round((y + ROW_PX - 1) * ratio));
        stamp(this.#pixels, width, top, bottom, this.#even, this.#odd);
        if (wide.length) texts.push({ y, items: wide });
      }
    }
    context.putImageData(this.#image, 0, 0);
    this.#drawGrid(context, entries, scroll, marks);
    for (const { y, items } of texts) this.#drawTexts(context, y, items);
    const { width: seenWidth } = this.surface;
    drawArea(context, this.options, entries, scroll, seenWidth, this.#colors);
    if (this.chosen) drawChosen(context, this.options, this.chosen, scroll, seenWidth, this.#colors);
    this.options.arrows.draw(context, this.options, scroll, this.surface, this.#colors);
  }

  /**
   * The lines that an area covers; null for all, where it is no higher than a row.
   * @param {number} top
   * @param {number} bottom
   */
  #linesBetween(top, bottom) {
    if (bottom - top < ROW_PX) return null;
    const scroll = this.element.scrollTop;
    const lines = this.options.layout.between(top + scroll, bottom + scroll)
      .flatMap(({ line }) => (line ? [line.line] : []));
    return lines.length ? lines : null;
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  #fit(width, height) {
    if (this.#image.width !== width || this.#image.height !== height) {
      this.#image = new ImageData(width, height);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
      this.#even = new Uint32Array(width);
      this.#odd = new Uint32Array(width);
    } else {
      this.#pixels.fill(0);
    }
  }

  /**
   * One row of all tiles, the finer over the coarser; null where there is nothing.
   * @param {Tile[]} tiles
   * @param {number} line
   * @param {number} row
   * @param {import("./paint.js").Scale} scale
   * @param {import("./paint.js").Shades} shades
   */
  #paintRow(tiles, line, row, scale, shades) {
    /** @type {import("./paint.js").Wide[]} */
    let wide = [];
    let isEmpty = true;
    const ratio = this.surface.ratio;
    for (const tile of tiles) {
      const covers = (tile.lines === null || tile.lines.has(line)) && row < tile.rows;
      if (!covers) continue;
      const track = tile.trackAt.get(trackKey(line, row));
      const left = Math.max(0, Math.floor((tile.from - scale.from) * scale.perPs));
      const right = Math.min(scale.width, Math.ceil((tile.to - scale.from) * scale.perPs));
      if (isEmpty && track === undefined) continue;
      // What a finer tile shows takes the place of what is below it.
      this.#even.fill(0, isEmpty ? 0 : left, isEmpty ? scale.width : right);
      this.#odd.fill(0, isEmpty ? 0 : left, isEmpty ? scale.width : right);
      wide = isEmpty ? [] : wide.filter((one) => one.right <= left || one.left >= right);
      isEmpty = false;
      if (track === undefined) continue;
      paintTrack(this.#even, this.#odd, tile, track, scale, shades, wide, TEXT_FROM * ratio);
    }
    return isEmpty ? null : wide;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Entry[]} entries
   * @param {number} scroll
   * @param {number[]} marks
   */
  #drawGrid(context, entries, scroll, marks) {
    const { width, height } = this.surface;
    context.fillStyle = this.#colors["line"] ?? "";
    // Behind what is drawn already.
    context.globalCompositeOperation = "destination-over";
    for (const mark of marks) {
      context.fillRect(Math.round(this.options.viewport.x(mark, width)), 0, 1, height);
    }
    context.fillStyle = this.#colors["shade"] ?? "";
    for (const entry of entries) {
      if (!entry.line) context.fillRect(0, entry.top - scroll, width, entry.height - 2);
    }
    context.globalCompositeOperation = "source-over";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} y
   * @param {import("./paint.js").Wide[]} items
   */
  #drawTexts(context, y, items) {
    const { ratio } = this.surface;
    const { names, legend } = this.options;
    const most = this.surface.width;
    for (const { tile, item, left, right } of items) {
      const begin = left / ratio + INSET, room = Math.min(right / ratio, most) - begin - INSET;
      const code = tile.name[item];
      const does = tile.activity[item];
      if ((names.dim[code] && names.isKnown(code)) || legend.off[does]) continue;
      const count = tile.count[item];
      const name = count > 1 ? `${count.toLocaleString("en-US")} × ${names.get(code)}` : names.get(code);
      const long = `${name} · ${time(tile.duration[item])}`;
      const text = fitted(context, long, name, room);
      if (!text) continue;
      const shade = legend.mode === "name" ? names.color[code] ?? 0 : does;
      if (count > 1) {
        // On hatching no ink is read everywhere.
        context.strokeStyle = this.#shades.css[shade] ?? "";
        context.lineWidth = 4;
        context.strokeText(text, begin, y + ROW_PX / 2);
      }
      context.fillStyle = this.#shades.ink[shade] ?? "";
      context.fillText(text, begin, y + ROW_PX / 2);
    }
  }

  /**
   * The item at a place of the canvas, of the finest tile that has one.
   * @param {number} x
   * @param {number} y
   */
  #hit(x, y) {
    const { layout, viewport, tiles } = this.options;
    const place = layout.at(y + this.element.scrollTop);
    if (!place) return null;
    const { width } = this.surface;
    const reach = (REACH_PX * viewport.span) / width, at = viewport.time(x, width);
    const result = tiles.best(this.want()).reverse().find((tile) => tile.from <= at && tile.to >= at
      && row(tile, place.line.line, place.row) !== undefined);
    if (!result) return null;
    const track = /** @type {number} */ (row(result, place.line.line, place.row));
    const first = firstItem(result, track, at - reach - result.start);
    let best = -1, least = reach;
    for (let item = first; item < result.first[track + 1]; item++) {
      const begin = result.start + result.begin[item];
      if (begin > at + reach) break;
      const away = Math.max(begin - at, at - begin - result.duration[item], 0);
      if (away <= least) {
        best = item;
        least = away;
      }
      if (away === 0 && begin + result.duration[item] > at) break;
    }
    return best < 0 ? null : { tile: result, item: best, ...place };
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    this.options.pointed(x);
    const hit = this.#hit(x, y);
    this.surface.canvas.classList.toggle("on-event", hit !== null);
    if (!hit) {
      this.options.tips.hide();
      return;
    }
    const { tile, item } = hit;
    const count = tile.count[item], name = this.options.names.get(tile.name[item]);
    const box = this.surface.canvas.getBoundingClientRect();
    const begins = `begins at ${time(tile.start + tile.begin[item], 7)}`;
    const { tips, legend } = this.options, does = legend.activities[tile.activity[item]]?.text ?? "";
    if (count > 1) {
      tips.hide();
      showTip(box.left + x, box.top + y, [
        `${count.toLocaleString("en-US")} events in ${time(tile.duration[item])}`,
        `mostly ${does}`, `the longest: ${name}`, `together ${time(tile.busy[item])}, ${begins}`,
        WORDING.timeline.zoom]);
      return;
    }
    tips.show(box.left + x, box.top + y, tile.event[item],
      [name, time(tile.duration[item], 5), does, begins]);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #click(x, y) {
    this.surface.canvas.focus({ preventScroll: true });
    const hit = this.#hit(x, y);
    if (!hit) {
      this.options.choose(null, null);
      return;
    }
    const { tile, item, line } = hit;
    this.options.choose(tile.event[item], tile.count[item] > 1 ? null : {
      event: tile.event[item], name: this.options.names.get(tile.name[item]), line: line.line, row: hit.row,
      start_ps: tile.start + tile.begin[item], duration_ps: tile.duration[item],
    });
  }

  /**
   * Scroll so that a row is in view.
   * @param {number} line
   * @param {number} row
   * @param {boolean} [isShort] no further than it needs, where a jump would lose the place
   */
  reveal(line, row, isShort = false) {
    const { layout } = this.options;
    if (layout.unfold(line, row)) this.options.folded();
    this.space.style.height = `${layout.height}px`;
    const top = layout.topOf(line, row);
    if (top === null) return;
    const { clientHeight: height, scrollTop: scroll } = this.element;
    if (top < scroll + ROW_PX || top + 2 * ROW_PX > scroll + height) {
      this.element.scrollTop = !isShort ? top - height / 3
        : top < scroll + ROW_PX ? top - ROW_PX : top + 2 * ROW_PX - height;
    }
  }

  destroy() {
    this.ends();
    this.surface.destroy();
    hideTip();
  }
}

/**
 * @param {Tile} tile
 * @param {number} line
 * @param {number} row
 */
function row(tile, line, row) {
  return tile.trackAt.get(trackKey(line, row));
}
