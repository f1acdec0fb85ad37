/** Which lines are shown, and in which order: pinned ones first, hidden ones not at all. */

import { expression } from "../../core/expression.js";
import { formatRanges, parseRanges } from "./ranges.js";

/** @typedef {import("./layout.js").Line} Line */
/** @typedef {import("./layout.js").Plane} Plane */
/** What an address says of it. @typedef {{pin: string, hide: string, order: string, only: string}} State */

export class Arrangement {
  /** @type {number[]} the lines at the top, in their order */
  pinned = [];
  /** @type {Set<number>} */
  hidden = new Set();
  /** What a line's name or its plane's has to match; "" for all. */
  only = "";
  /** What is wrong with `only`, in a line. */
  problem = "";
  /** @type {number[]} lines that the reader moved, with those of their planes, in their order */
  #order = [];
  /** @type {(text: string) => boolean} */
  #matches = () => true;

  /**
   * @param {Plane[]} planes
   * @param {Line[]} lines
   */
  constructor(planes, lines) {
    this.planes = planes;
    this.lines = lines;
  }

  /** @returns {State} as short texts */
  get state() {
    return { pin: this.pinned.join(","), hide: formatRanges(this.hidden), order: this.#order.join(","),
      only: this.only };
  }

  /** @param {State} state */
  set({ pin, hide, order, only }) {
    const known = (/** @type {string} */ text) => [...new Set(text.split(",").filter(Boolean).map(Number))]
      .filter((line) => this.lines[line]?.events);
    this.pinned = known(pin);
    this.hidden = new Set(parseRanges(hide, this.lines.length));
    this.#order = known(order);
    this.filter(only);
  }

  /** @param {string} text */
  filter(text) {
    this.only = text;
    this.problem = "";
    try {
      this.#matches = matcherOf(text);
    } catch (error) {
      // Until it is one, all lines are shown.
      this.#matches = () => true;
      this.problem = `no expression: ${error instanceof Error ? error.message : error}`;
    }
  }

  /** The shown lines of a plane, but those that are pinned. @param {Plane} plane */
  linesOf(plane) {
    const place = new Map(this.#order.map((line, at) => [line, at]));
    const lines = plane.lines.filter((line) => this.#isShown(line) && !this.pinned.includes(line.line));
    if (!place.size) return lines;
    return lines.sort((one, other) => (place.get(one.line) ?? one.line) - (place.get(other.line) ?? other.line));
  }

  /** The pinned lines that are shown. */
  get pinnedLines() {
    return this.pinned.flatMap((line) => this.lines[line] ?? []).filter((line) => !this.hidden.has(line.line));
  }

  /** How many lines with events are not shown. */
  get away() {
    return this.planes.reduce((sum, { lines }) =>
      sum + lines.filter((line) => !this.#isShown(line) && !this.pinned.includes(line.line)
        || this.hidden.has(line.line)).length, 0);
  }

  /** @param {Line} line */
  #isShown(line) {
    return !this.hidden.has(line.line)
      && (!this.only || this.#matches(`${this.planes[line.plane]?.name ?? ""} / ${line.name}`));
  }

  /** @param {number} line */
  togglePin(line) {
    this.pinned = this.pinned.includes(line) ? this.pinned.filter((one) => one !== line) : [...this.pinned, line];
  }

  /** @param {number[]} lines */
  hide(lines) {
    for (const line of lines) this.hidden.add(line);
  }

  /** Hide all but some. @param {number[]} lines */
  show(lines) {
    const shown = new Set(lines);
    this.hidden = new Set(this.lines.filter(({ line, events }) => events && !shown.has(line)).map(({ line }) => line));
    this.filter("");
  }

  /** Show all lines where the file has them. */
  reset() {
    this.pinned = [];
    this.#order = [];
    this.hidden.clear();
    this.filter("");
  }

  /** Show a line, whatever hides it; returns whether something did. @param {number} line */
  reveal(line) {
    const own = this.lines[line];
    if (!own || this.pinned.includes(line) || this.#isShown(own)) return this.hidden.delete(line);
    this.hidden.delete(line);
    if (!this.#isShown(own)) this.filter("");
    return true;
  }

  /**
   * Move a line among those of its plane, or among the pinned.
   * @param {number} line
   * @param {1 | -1} way
   */
  move(line, way) {
    if (this.pinned.includes(line)) {
      this.pinned = swapped(this.pinned, line, way);
      return;
    }
    const plane = this.planes[this.lines[line]?.plane ?? -1];
    if (!plane) return;
    const moved = swapped(this.linesOf(plane).map((one) => one.line), line, way);
    const others = this.#order.filter((one) => !moved.includes(one));
    // By their places among the lines of the plane: the lines that are away stay where they are.
    this.#order = [...others, ...moved];
  }
}

/** Parts of a filter: an expression between slashes, or anything else up to the next `|`. */
const PART = /\s*(-?)(?:\/((?:[^/\\]|\\.)*)\/\s*(?=\||$)|([^|]*))(?:\||$)/gy;

/**
 * Whether a text matches: `gpu*stream`, `/stream [0-9]+$/`, several with `|` between them, `-` before
 * one for what may not match; in any case. No pattern is slow: pieces are looked for one after
 * another, and expressions take time in proportion to the text.
 * @param {string} pattern
 * @returns {(text: string) => boolean}
 * @throws {SyntaxError} for what is no expression
 */
export function matcherOf(pattern) {
  /** @type {((text: string) => boolean)[]} */
  const wanted = [];
  /** @type {((text: string) => boolean)[]} */
  const unwanted = [];
  for (const [whole, not, regular, plain = ""] of pattern.matchAll(PART)) {
    if (!whole) break;
    const text = plain.trim().toLowerCase();
    if (regular !== undefined) (not ? unwanted : wanted).push(expression(regular));
    else if (text) (not ? unwanted : wanted).push(has(text.split("*")));
  }
  /** @type {Map<string, boolean>} */
  const known = new Map();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const is = (!wanted.length || wanted.some((one) => one(text))) && !unwanted.some((one) => one(text));
    known.set(text, is);
    return is;
  };
}

/**
 * Whether a text has all pieces, one after another.
 * @param {string[]} pieces
 * @returns {(text: string) => boolean}
 */
function has(pieces) {
  return (text) => {
    const lower = text.toLowerCase();
    let at = 0;
    for (const piece of pieces) {
      const result = lower.indexOf(piece, at);
      if (result < 0) return false;
      at = result + piece.length;
    }
    return true;
  };
}

/**
 * @param {number[]} list
 * @param {number} member
 * @param {1 | -1} way
 */
function swapped(list, member, way) {
  const at = list.indexOf(member), to = at + way;
  if (at < 0 || to < 0 || to >= list.length) return list;
  const made = [...list];
  [made[at], made[to]] = [/** @type {number} */ (made[to]), /** @type {number} */ (made[at])];
  return made;
}
