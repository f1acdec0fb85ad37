/** Memory in use over time: least, largest and last of every pixel, as the service tells it. */

import { readColumns } from "../../core/columns.js";
import { isAbort } from "../../core/api.js";

const GROUP = "memory in use";
const AGAIN_MS = 40;
const FINE_PIXELS = 1024;

/**
 * One answer: `series[k]` is that of the k-th name asked for.
 * @typedef {object} Curves
 * @property {number} from
 * @property {number} to
 * @property {number} width
 * @property {Map<string, {low: Float64Array, high: Float64Array, last: Float64Array}>} series by allocator
 */

export class Counters {
  /** @type {Map<string, number>} */
  #places = new Map();

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
  }

  /** Learn which counters are memory in use; before anything else. */
  async open() {
    const { data } = await this.context.toolBytes("timeline",
      { view: "counter", format: "bin", start_ps: 0, end_ps: 1, width: 1 });
    const { counter_group: groups, counter_name: names } = readColumns(data);
    groups.forEach((/** @type {string} */ group, /** @type {number} */ place) => {
      if (group === GROUP) this.#places.set(names[place], place);
    });
  }

  /** @param {string} allocator */
  has(allocator) {
    return this.#places.has(allocator);
  }

  /**
   * The curves of some allocators; those that have none are left out.
   * @param {string[]} allocators
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {AbortSignal} [signal]
   * @returns {Promise<Curves>}
   */
  async ask(allocators, from, to, width, signal = this.context.signal) {
    const known = allocators.filter((name) => this.#places.has(name))
      .sort((one, other) => (this.#places.get(one) ?? 0) - (this.#places.get(other) ?? 0));
    /** @type {Curves} */
    const curves = { from, to, width, series: new Map() };
    if (!known.length) return curves;
    const { data } = await this.context.toolBytes("timeline", {
      view: "counter", format: "bin", start_ps: from, end_ps: to, width,
      lines: known.map((name) => this.#places.get(name)).join(","),
    }, signal);
    const { low, high, last } = readColumns(data);
    known.forEach((name, k) => {
      const part = (/** @type {Float64Array} */ all) => all.subarray(k * width, (k + 1) * width);
      curves.series.set(name, { low: part(low), high: part(high), last: part(last) });
    });
    return curves;
  }

  /**
   * The moment between `from` and `to` (exclusive) when an allocator holds most; null where it has
   * no record.
   * @param {string} allocator
   * @param {number} from
   * @param {number} to
   * @returns {Promise<{time: number, bytes: number} | null>}
   */
  async highest(allocator, from, to) {
    for (;;) {
      const width = Math.max(1, Math.min(FINE_PIXELS, to - from));
      const result = (await this.ask([allocator], from, to, width)).series.get(allocator);
      if (!result) return null;
      let best = -1;
      for (let n = 0; n < width; n++) {
        const value = result.high[n] ?? NaN;
        if (!Number.isNaN(value) && (best < 0 || value > (result.high[best] ?? 0))) best = n;
      }
      if (best < 0) return null;
      const bytes = result.high[best] ?? 0;
      const edge = (/** @type {number} */ n) => from + Math.floor((n * (to - from)) / width);
      const [begin, end] = [edge(best), edge(best + 1)];
      if (result.low.every((value, n) => value === bytes && result.high[n] === bytes)) {
        return { time: Math.floor((from + to) / 2), bytes };
      }
      // The pixel's last value holds until its end; else it lies somewhere inside.
      if (result.last[best] === bytes) return { time: Math.max(end - 1, begin), bytes };
      if (end - begin <= 1) return { time: begin, bytes };
      [from, to] = [begin, end];
    }
  }
}

/**
 * Keeps the newest answer for a stretch that changes all the time: one question at a time, the next
 * one for what is wanted then.
 * @template T
 */
export class Following {
  #isAsking = false;
  #last = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {() => T | null} wanted what is to be known now; null when it is
   * @param {(wanted: T) => Promise<void>} ask
   * @param {(error: unknown) => void} failed
   */
  constructor(wanted, ask, failed) {
    this.wanted = wanted;
    this.ask = ask;
    this.failed = failed;
  }

  /** Something changed. */
  async follow() {
    if (this.#isAsking) return;
    const wait = this.#last + AGAIN_MS - performance.now();
    if (wait > 0) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.follow(), wait);
      return;
    }
    const wanted = this.wanted();
    if (wanted === null) return;
    this.#isAsking = true;
    this.#last = performance.now();
    try {
      await this.ask(wanted);
    } catch (error) {
      if (!isAbort(error)) this.failed(error);
      return;
    } finally {
      this.#isAsking = false;
    }
    void this.follow();
  }

  destroy() {
    clearTimeout(this.#timer);
  }
}
