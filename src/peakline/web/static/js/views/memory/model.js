/** What the parts of the view share: the profile's allocators and steps, what is shown of them. */

import { SERIES } from "../../core/theme.js";
import { Viewport } from "../../core/viewport.js";

/** How much of the profile's length is left free at both of its ends. */
const AIR = 0.01;

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./counters.js").Curves} Curves */
/**
 * @typedef {object} Allocator
 * @property {string} name as the service knows it
 * @property {string} label as it is shown
 * @property {number} place in the service's list
 * @property {number | null} capacity_bytes
 * @property {number} peak_bytes
 * @property {number} untracked_allocations without an id, so that their end is not seen
 * @property {number} peak_time_ps
 * @property {number | null} lifetime_peak_bytes
 * @property {number} live_at_end_bytes
 */
/**
 * The answer of `live_memory`; docs/live-memory.md has every field.
 * @typedef {object} Moment
 * @property {number | null} start_ps
 * @property {number | null} end_ps
 * @property {any[]} allocators
 * @property {string | null} allocator
 * @property {number | null} at_ps
 * @property {number | null} record_ps
 * @property {number | null} bytes_in_use
 * @property {number | null} fragmentation
 * @property {number | null} step_id
 * @property {string | null} step_name
 * @property {boolean} is_peak
 * @property {any[]} rows
 * @property {number} rows_total
 * @property {number} rows_bytes
 * @property {Record<string, any[]>} [scopes]
 */

/**
 * What the pointer or the arrow keys are at, in the picture, its legend or the table: a buffer by its
 * record, and the texts of groups that it is about, by their names.
 * @typedef {{record: number | null, texts: Record<string, unknown>}} Pointed
 */

export class Model {
  /** @type {Pointed | null} */
  pointed = null;
  /** @type {Set<() => void>} */
  #pointing = new Set();

  /** @param {Pointed | null} pointed */
  point(pointed) {
    if (JSON.stringify(pointed) === JSON.stringify(this.pointed)) return;
    this.pointed = pointed;
    for (const done of this.#pointing) done();
  }

  /** @param {() => void} done @returns {() => void} no longer */
  onPoint(done) {
    this.#pointing.add(done);
    return () => this.#pointing.delete(done);
  }

  /** What the whole profile looks like, coarsely. @type {Curves | null} */
  whole = null;
  /** @type {import("./steps.js").Steps | null} */
  steps = null;
  /** What is live at the moment looked at. @type {Moment | null} */
  moment = null;
  /** The chosen buffer's life. @type {{start_ps: number | null, end_ps: number | null, text: string} | null} */
  life = null;

  /** The range that is being dragged. @type {[number, number] | null} */
  range = null;

  /**
   * @param {import("./counters.js").Counters} counters
   * @param {Moment} first the answer that tells of the allocators
   * @param {State} state
   * @param {() => void} onWhole
   */
  constructor(counters, first, state, onWhole) {
    this.counters = counters;
    this.state = state;
    this.onWhole = onWhole;
    /** @type {Allocator[]} */
    this.allocators = first.allocators.map((result, place) => ({
      ...result, name: result.allocator, label: result.allocator || "(no name)", place,
    }));
    this.begin = first.start_ps ?? 0;
    this.end = first.end_ps ?? 0;
    const air = Math.ceil((this.end - this.begin) * AIR);
    this.viewport = new Viewport(this.begin - air, this.end + air);
    /** The largest allocators first. */
    this.ranked = [...this.allocators].sort((one, other) => other.peak_bytes - one.peak_bytes);
  }

  /** Whether the file tells of one moment only, and so has no axis of time. */
  get isMoment() {
    return this.begin === this.end;
  }

  /** The one whose content is shown. @returns {Allocator | null} */
  get allocator() {
    const { allocator } = this.state;
    return this.allocators.find(({ name }) => name === allocator) ?? this.ranked[0] ?? null;
  }

  /** Those whose curves are drawn, in the service's order. */
  get shown() {
    const { shown } = this.state, chosen = this.allocator;
    const known = this.allocators.filter(({ name }) => this.counters.has(name));
    if (shown) return known.filter(({ place }) => shown.includes(place));
    const first = new Set(this.ranked.slice(0, SERIES));
    return known.filter((one) => first.has(one) || one === chosen);
  }

  /** When the moment looked at is, in ps. */
  get shownMoment() {
    return this.state.at ?? this.allocator?.peak_time_ps ?? null;
  }

  /** @param {Curves} curves */
  setWhole(curves) {
    this.whole = curves;
    this.onWhole();
  }
}
