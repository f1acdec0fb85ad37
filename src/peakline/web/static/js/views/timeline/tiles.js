/**
 * Pieces of the picture from the server: asked for as the viewport moves, kept for a while.
 *
 * What is missing is asked for in pixels of the screen, with a little more on both sides; when it has
 * come and the viewport rests, the same with half a screen more, so that moving finds it there. Until
 * a tile comes, what is there is drawn stretched. At most two questions are on their way; of these the
 * older is let go on, so that a steady zoom shows something between, the newer gives way.
 */

import { isAbort, ProblemError } from "../../core/api.js";
import { askTimeline } from "./ask.js";
import { formatRanges } from "./ranges.js";

const RETAINED = 8;
const AT_ONCE = 2;
const MARGIN = 0.15;
const MARGIN_AHEAD = 0.5;
const NEAR_EDGE = 0.2;
const REST_MS = 120;
const MOST_WIDTH = 16384;
const AGAIN_MS = 700;
const ROW_LIMIT = 4096;

/**
 * What is to be seen.
 * @typedef {object} Want
 * @property {number} from
 * @property {number} to
 * @property {number} width in pixels
 * @property {number[] | null} lines those in view; null is all
 * @property {number[] | null} more those to ask for besides
 * @property {number} rows how many of each
 */
/**
 * @typedef {object} Question
 * @property {number} from
 * @property {number} to
 * @property {number} width
 * @property {Set<number> | null} lines
 * @property {number} rows
 * @property {number} requested resolution in picoseconds, a power of two, 0 below 1
 */
/** @typedef {ArrayLike<any> & Iterable<any>} Numbers of any type: the hot loops read them as they are */
/**
 * @typedef {Question & {start: number, resolution: number, events: number, trackAt: Map<number, number>,
 *   first: Numbers, begin: Numbers, duration: Numbers, busy: Numbers, count: Numbers, name: Numbers,
 *   activity: Numbers, event: Numbers, trackLine: Numbers, trackRow: Numbers}} Tile
 */

/**
 * The resolution of a viewport.
 * @param {number} span
 * @param {number} width
 */
export function resolutionOf(span, width) {
  const pixel = span / Math.max(width, 1);
  return pixel < 1 ? 0 : 2 ** Math.floor(Math.log2(pixel));
}

/**
 * A track's key: a line has fewer rows than ROW_LIMIT.
 * @param {number} line
 * @param {number} row
 */
export function trackKey(line, row) {
  return line * ROW_LIMIT + row;
}

export class Tiles {
  /** @type {Tile[]} */
  #tiles = [];
  /** @type {{question: Question, ends: AbortController, isAhead: boolean}[]} */
  #coming = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting;
  /** @type {Want | null} */
  #want = null;
  /** How often the width was halved, because a tile had too many items. */
  #halved = 0;
  /** @type {unknown} the reason why the last question failed */
  error = null;
  /** @type {Set<number>} the activities that occur in what came so far */
  activities = new Set();

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {() => void} changed a tile came, or failed
   */
  constructor(context, changed) {
    this.context = context;
    this.changed = changed;
    this.first = -Infinity;
    this.last = Infinity;
    context.signal.addEventListener("abort", () => {
      clearTimeout(this.#resting);
      for (const { ends } of this.#coming) ends.abort();
    });
  }

  /** Whether the picture of `want` is complete. */
  get isComplete() {
    return this.#want !== null && this.#tiles.some((tile) => answers(tile, this.#want));
  }

  /**
   * Say what is to be seen; asks for what is missing.
   * @param {Want} want
   */
  want(want) {
    const isMoved = !isSame(this.#want, want);
    this.#want = want;
    if (isMoved) clearTimeout(this.#resting);
    const present = this.#tiles.find((tile) => answers(tile, want));
    if (present) {
      this.#use(present);
      if (isMoved) this.#resting = setTimeout(() => this.#askAhead(want), REST_MS);
      return;
    }
    if (this.#coming.some(({ question }) => answers(question, want)) || this.error) return;
    // What was asked for ahead gives way to what is missing.
    for (const { ends, isAhead } of this.#coming) if (isAhead) ends.abort();
    this.#coming = this.#coming.filter(({ isAhead }) => !isAhead);
    if (this.#coming.length >= AT_ONCE) this.#coming.pop()?.ends.abort();
    void this.#ask(this.#question(want, MARGIN), false);
  }

  /**
   * The viewport rests: have what is around it, too.
   * @param {Want} want
   */
  #askAhead(want) {
    const isThere = this.#tiles.some((tile) => answers(tile, want) && !this.#isNearEdge(tile, want));
    if (!isThere && !this.#coming.length && !this.error) {
      void this.#ask(this.#question(want, MARGIN_AHEAD), true);
    }
  }

  /**
   * The tiles to draw, the coarsest first: a later one holds what is finer, of a part or the whole.
   * @param {Want} want
   * @returns {Tile[]}
   */
  best(want) {
    const present = this.#tiles.find((tile) => answers(tile, want));
    if (present) return [present];
    const seen = this.#tiles.filter((tile) => tile.to > want.from && tile.from < want.to);
    return seen.sort((one, other) => other.requested - one.requested);
  }

  /** Ask again after an error. */
  retry() {
    this.error = null;
    if (this.#want) this.want(this.#want);
  }

  /**
   * The first tile, before anything is known of the profile.
   * @param {number | null} from null is the beginning
   * @param {number | null} to
   * @param {number} width
   * @param {number} rows
   */
  async askFirst(from, to, width, rows) {
    const answer = await this.#load({ start_ps: from, end_ps: to, width, rows }, this.context.signal);
    const start = answer["start_ps"], end = answer["end_ps"];
    this.#keep(answer, { from: start, to: end, width, lines: null, rows,
      requested: resolutionOf(end - start, width) });
  }

  /**
   * @param {Want} want
   * @param {number} margin on both sides, of what is seen
   */
  #question({ from, to, width, lines, more, rows }, margin) {
    const span = to - from;
    const begin = Math.max(this.first, Math.floor(from - margin * span));
    const end = Math.min(this.last, Math.ceil(to + margin * span));
    const scaled = Math.ceil((width * (end - begin)) / span);
    const requested = Math.max(1, Math.min(MOST_WIDTH, scaled) >> this.#halved);
    return {
      from: begin, to: end, width: requested, rows, requested: resolutionOf(span, width),
      lines: lines === null ? null : new Set([...lines, ...(more ?? [])]),
    };
  }

  /**
   * @param {Question} question
   * @param {boolean} isAhead
   */
  async #ask(question, isAhead) {
    const ends = new AbortController();
    const coming = { question, ends, isAhead };
    this.#coming.push(coming);
    try {
      const { from, to, width, lines, rows } = question;
      const answer = await this.#load({
        start_ps: from, end_ps: to, width, rows, lines: lines ? formatRanges(lines) : null,
      }, ends.signal);
      this.#keep(answer, question);
    } catch (error) {
      if (!isAbort(error)) this.#failed(error, question);
    } finally {
      this.#coming = this.#coming.filter((one) => one !== coming);
      this.changed();
    }
  }

  /**
   * @param {unknown} error
   * @param {Question} question
   */
  #failed(error, question) {
    const isTooMuch = error instanceof ProblemError && error.status === 400 && question.width > 64;
    if (isTooMuch && /items/.test(error.message)) {
      this.#halved += 1;
      return;
    }
    this.error = error;
    if (error instanceof ProblemError && error.status === 429) setTimeout(() => this.retry(), AGAIN_MS);
  }

  /**
   * @param {Record<string, string | number | null>} query
   * @param {AbortSignal} signal
   */
  async #load(query, signal) {
    return askTimeline(this.context, { view: "tile", activities: "true", ...query }, signal);
  }

  /**
   * @param {Record<string, any>} columns
   * @param {Question} question
   */
  #keep(columns, question) {
    const trackLine = columns["track_line"], trackRow = columns["track_row"];
    const trackAt = new Map();
    for (let track = 0; track < trackLine.length; track++) {
      trackAt.set(trackKey(trackLine[track], trackRow[track]), track);
    }
    /** @type {Tile} */
    const tile = {
      ...question, start: columns["start_ps"], resolution: columns["resolution_ps"],
      events: columns["events"], trackAt, trackLine, trackRow, first: columns["track_first"],
      begin: columns["begin_ps"], duration: columns["duration_ps"], busy: columns["busy_ps"],
      count: columns["count"], name: columns["name"], event: columns["event"],
      activity: columns["activity"],
    };
    for (const number of new Set(tile.activity)) this.activities.add(number);
    this.error = null;
    this.#tiles.unshift(tile);
    if (this.#tiles.length > RETAINED) {
      // The one of the longest stretch stays: whatever is shown next, something of it is there.
      const longest = Math.max(...this.#tiles.map(({ from, to }) => to - from));
      let place = this.#tiles.length - 1;
      for (let older = place; older > 0; older--) {
        const tile = /** @type {Tile} */ (this.#tiles[older]);
        if (tile.to - tile.from < longest) {
          place = older;
          break;
        }
      }
      this.#tiles.splice(place, 1);
    }
  }

  /** @param {Tile} tile */
  #use(tile) {
    this.#tiles = [tile, ...this.#tiles.filter((one) => one !== tile)];
  }

  /**
   * @param {Tile} tile
   * @param {Want} want
   */
  #isNearEdge(tile, { from, to }) {
    const near = (to - from) * NEAR_EDGE;
    return (tile.from > this.first && from - tile.from < near)
      || (tile.to < this.last && tile.to - to < near);
  }
}

/**
 * Whether a tile, or a question for one, has all that is to be seen.
 * @param {Question} tile
 * @param {Want | null} want
 */
function answers(tile, want) {
  return want !== null && tile.from <= want.from && tile.to >= want.to
    && tile.requested <= resolutionOf(want.to - want.from, want.width) && tile.rows >= want.rows
    && (tile.lines === null || (want.lines !== null
      && want.lines.every((line) => /** @type {Set<number>} */ (tile.lines).has(line))));
}

/**
 * @param {Want | null} one
 * @param {Want} other
 */
function isSame(one, other) {
  return one !== null && one.from === other.from && one.to === other.to && one.width === other.width
    && one.rows === other.rows && String(one.lines) === String(other.lines);
}
