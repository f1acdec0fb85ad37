/** Where planes, lines and their rows lie, from the top of all lanes, in pixels. */

import { Arrangement } from "./arrangement.js";
import { formatRanges, parseRanges } from "./ranges.js";

export const ROW_PX = 17;
const PLANE_PX = 26;
/** What a finger hits: the menu of a line of one row. */
const LEAST_PX = 24;
const GAP_PX = 5;
/** In place of a plane: what is pinned. */
export const PINNED = -1;

/**
 * @typedef {object} Line
 * @property {number} line its number in questions
 * @property {number} plane
 * @property {string} name
 * @property {number | null} nativeId
 * @property {number} events
 * @property {number} rows
 */
/**
 * A host's head (`part` is its place), a plane's (`line` is null), or a line with its rows. The plane of the
 * pinned is `PINNED`.
 * @typedef {{plane: number, line: Line | null, top: number, height: number, rows: number, part?: number}} Entry
 */
/** One of several hosts, `part` is its place among them. @typedef {{name: string, kind: string, lines: Line[], events: number, part: number, short: string}} Plane */
/** @typedef {{host: string, title: string}} Part */

export class Layout {
  /** @type {Entry[]} */
  entries = [];
  height = 0;
  /** @type {Set<number>} */
  #foldedPlanes = new Set();
  /** @type {Set<number>} */
  #foldedLines = new Set();

  /** @param {Record<string, any>} lanes the tool's answer */
  constructor(lanes) {
    /** @type {Plane[]} */
    this.planes = lanes["plane_name"].map((/** @type {string} */ name, /** @type {number} */ place) =>
      ({ name, kind: lanes["plane_kind"][place], lines: [], events: 0, part: lanes["plane_part"]?.[place] ?? -1,
        short: name.slice((lanes["parts"]?.[lanes["plane_part"]?.[place]]?.title.length ?? -3) + 3) }));
    /** The hosts, where there are several. @type {Part[]} */
    this.parts = lanes["parts"] ?? [];
    /** @type {Line[]} */
    this.lines = lanes["line_name"].map((/** @type {string} */ name, /** @type {number} */ line) => ({
      line, name, plane: lanes["line_plane"][line], nativeId: lanes["line_native_id"][line],
      events: lanes["line_events"][line], rows: lanes["line_rows"][line],
    }));
    for (const line of this.lines) {
      const plane = this.planes[line.plane];
      if (!plane || !line.events) continue;
      plane.lines.push(line);
      plane.events += line.events;
    }
    /** Lines without a timed event: they are not drawn. */
    this.emptyLines = this.lines.filter((line) => !line.events).length;
    this.arrangement = new Arrangement(this.planes, this.lines);
    this.place();
  }

  /** @param {number} plane */
  isPlaneFolded(plane) {
    return this.#foldedPlanes.has(plane);
  }

  /** @param {number} line */
  isLineFolded(line) {
    return this.#foldedLines.has(line);
  }

  /** @param {number} plane */
  togglePlane(plane) {
    toggle(this.#foldedPlanes, plane);
    this.place();
  }

  /** @param {number} line */
  toggleLine(line) {
    toggle(this.#foldedLines, line);
    this.place();
  }

  /**
   * Unfold what hides a row of a line.
   * @param {number} line
   * @param {number} row
   * @returns {boolean} whether something changed
   */
  unfold(line, row) {
    const plane = this.lines[line]?.plane ?? -1;
    const away = this.arrangement.reveal(line);
    const isPinned = this.arrangement.pinned.includes(line);
    const hidden = (!isPinned && this.#foldedPlanes.delete(plane)) || away;
    const cut = row > 0 && this.#foldedLines.delete(line);
    if (hidden || cut) this.place();
    return hidden || cut;
  }

  /** Whether all planes of a host are folded. @param {number} part */
  isPartFolded(part) {
    return this.#planesOf(part).every((plane) => this.#foldedPlanes.has(plane));
  }

  /** @param {number} part */
  togglePart(part) {
    const isFolded = this.isPartFolded(part);
    for (const plane of this.#planesOf(part)) {
      if (isFolded) this.#foldedPlanes.delete(plane);
      else this.#foldedPlanes.add(plane);
    }
    this.place();
  }

  /** The planes of a host that have lines. @param {number} part */
  #planesOf(part) {
    return this.planes.flatMap((plane, place) => plane.part === part && plane.lines.length ? [place] : []);
  }

  /** What is folded, as a short text: `p0,3,8-12`. */
  get folded() {
    const planes = formatRanges(this.#foldedPlanes), lines = formatRanges(this.#foldedLines);
    return [planes && `p${planes.replaceAll(",", ",p")}`, lines].filter(Boolean).join(",");
  }

  /** @param {string} text */
  setFolded(text) {
    const parts = text.split(",");
    const isPlane = (/** @type {string} */ part) => part.startsWith("p");
    const planes = parts.filter(isPlane).map((part) => part.slice(1)).join(",");
    const lines = parts.filter((part) => !isPlane(part)).join(",");
    this.#foldedPlanes = new Set(parseRanges(planes, this.planes.length));
    this.#foldedLines = new Set(parseRanges(lines, this.lines.length));
    this.place();
  }

  /**
   * The entries that lie between two heights.
   * @param {number} top
   * @param {number} bottom
   * @returns {Entry[]}
   */
  between(top, bottom) {
    let low = 0, high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const entry = /** @type {Entry} */ (this.entries[middle]);
      if (entry.top + entry.height <= top) low = middle + 1;
      else high = middle;
    }
    const result = [];
    for (let place = low; place < this.entries.length; place++) {
      const entry = /** @type {Entry} */ (this.entries[place]);
      if (entry.top >= bottom) break;
      result.push(entry);
    }
    return result;
  }

  /**
   * The line and row at a height; null on heads and in gaps.
   * @param {number} y
   */
  at(y) {
    const entry = this.between(y, y + 1)[0];
    if (!entry?.line) return null;
    const row = Math.floor((y - entry.top) / ROW_PX);
    return row >= 0 && row < entry.rows ? { line: entry.line, row } : null;
  }

  /**
   * The top of a row; null where its plane is folded.
   * @param {number} line
   * @param {number} row
   */
  topOf(line, row) {
    const entry = this.entries.find((one) => one.line?.line === line);
    return entry ? entry.top + Math.min(row, entry.rows - 1) * ROW_PX : null;
  }

  /** Lay out anew, after the arrangement changed. */
  place() {
    this.entries = [];
    let top = 0, part = -1;
    /** @param {number} plane @param {Line[]} lines */
    const add = (plane, lines) => {
      if (!lines.length) return;
      const own = this.planes[plane]?.part ?? -1;
      if (own !== part) {
        part = own;
        this.entries.push({ plane, line: null, top, height: PLANE_PX, rows: 0, part });
        top += PLANE_PX;
      }
      if (part >= 0 && this.isPartFolded(part)) return;
      this.entries.push({ plane, line: null, top, height: PLANE_PX, rows: 0 });
      top += PLANE_PX;
      if (this.#foldedPlanes.has(plane)) return;
      for (const line of lines) {
        const rows = this.#foldedLines.has(line.line) ? 1 : line.rows;
        const height = Math.max(rows * ROW_PX + GAP_PX, LEAST_PX);
        this.entries.push({ plane, line, top, height, rows });
        top += height;
      }
    };
    add(PINNED, this.arrangement.pinnedLines);
    this.planes.forEach((plane, place) => add(place, this.arrangement.linesOf(plane)));
    this.height = top;
  }
}

/**
 * @param {Set<number>} set
 * @param {number} member
 */
function toggle(set, member) {
  if (!set.delete(member)) set.add(member);
}
