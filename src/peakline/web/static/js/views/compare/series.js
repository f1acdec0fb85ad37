/** The sessions that are compared, step by step: laid beside one another by the number of the step. */

import { isAbort, json, sessionPath } from "../../core/api.js";
import { time, worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

const BINS = 800;

/**
 * @typedef {object} Bins memory in use of one allocator
 * @property {string} allocator
 * @property {number} peak_bytes
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {(number | null)[]} end
 */
/**
 * @typedef {object} Series what the tool `step_series` answers
 * @property {number} steps
 * @property {number[]} first
 * @property {number[]} count
 * @property {string[]} name
 * @property {number[]} start_ps
 * @property {number} end_ps
 * @property {number[] | null} wall_low_ps
 * @property {number[] | null} wall_high_ps
 * @property {Bins[]} allocators
 */
/** @typedef {{name: string, host: string}} Compared */
/** @typedef {{title: string, name: string, series: Series}} One of those that have a series */
/**
 * @typedef {object} Line
 * @property {number} place among what is compared: its color
 * @property {string} title
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {(number | null)[]} value what is drawn as a line
 */
/**
 * @typedef {object} Model
 * @property {boolean} bySteps
 * @property {string[]} at what each position is called
 * @property {Line[]} lines
 * @property {{place: number, title: string, value: (number | null)[]}[]} differences from the first
 */
/** @typedef {"end" | "low" | "high"} Measure */

export class StepwiseData {
  /** @type {(One & {place: number})[]} */
  ones = [];
  bySteps = true;
  /** Which have no steps, where others have. @type {string[]} */
  without = [];

  /**
   * @param {Compared[]} sessions
   * @param {string} root
   * @param {AbortSignal} signal
   * @returns {Promise<StepwiseData>}
   */
  static async load(sessions, root, signal) {
    const data = new StepwiseData();
    const ask = (/** @type {string} */ by) => Promise.all(sessions.map(async ({ name, host }) => {
      try {
        const answer = await json(sessionPath(name, "tools", "step_series"),
          { query: { root, host, width: BINS, by }, signal });
        return /** @type {Series | null} */ (answer.data.series);
      } catch (error) {
        if (isAbort(error)) throw error;
        return null;
      }
    }));
    let result = await ask("step");
    const withSteps = result.filter((one) => one?.steps).length;
    data.bySteps = withSteps > 0 && result.every((one) => !one || one.steps > 0);
    if (withSteps && !data.bySteps) {
      data.without = sessions.filter((_, place) => result[place]?.steps === 0).map(({ name }) => name);
      result = await ask("time");
    }
    result.forEach((series, place) => {
      if (series) {
        data.ones.push({ place, title: titleOf(place, sessions), name: sessions[place]?.name ?? "",
          series });
      }
    });
    return data;
  }

  /** How they are laid beside one another, in one line. */
  get alignment() {
    if (this.bySteps) return WORDING.compare.by_number;
    return worded(this.without.length ? WORDING.compare.by_time_without : WORDING.compare.by_time,
      { sessions: this.without.join(", ") });
  }

  /**
   * Memory of an allocator; `names` is what it is called in the first sessions.
   * @param {(string | null)[]} names
   * @param {Measure} measure
   */
  memory(names, measure) {
    return this.#model((one) => {
      const name = names[one.place] ?? names[0] ?? names[1];
      const bins = one.series.allocators.find(({ allocator }) => allocator === name);
      return bins && { low: bins.low, high: bins.high, value: bins[measure] };
    });
  }

  /** The time of each step. */
  time() {
    if (!this.bySteps) return null;
    return this.#model(({ series: { wall_low_ps: low, wall_high_ps: high } }) =>
      low && high && { low, high, value: high });
  }

  /**
   * @param {(one: One & {place: number}) => {low: (number | null)[], high: (number | null)[], value: (number | null)[]} | null | undefined} of
   * @returns {Model | null}
   */
  #model(of) {
    const results = this.ones.flatMap((one) => {
      const values = of(one);
      return values ? [{ one, values }] : [];
    });
    if (!results.length) return null;
    const extent = Math.max(...results.map(({ one: { series } }) => lengthOf(series)));
    const many = this.bySteps ? Math.min(extent, BINS) : BINS;
    const at = Array.from({ length: many }, (_, place) => Math.floor((place * extent) / many));
    const lines = results.map(({ one, values }) => {
      const bins = at.map((position) => binAt(one.series, position));
      const pick = (/** @type {(number | null)[]} */ list) => bins.map((bin) => list[bin] ?? null);
      return { place: one.place, title: one.title, low: pick(values.low), high: pick(values.high),
        value: pick(values.value) };
    });
    const [first] = lines;
    const differences = first?.place === 0 ? lines.slice(1).map(({ place, title, value }) => ({ place,
      title, value: value.map((one, index) => {
        const before = first.value[index];
        return one === null || before === null || before === undefined ? null : one - before;
      }) })) : [];
    return { bySteps: this.bySteps, lines, differences,
      at: at.map((position) => (this.bySteps ? `step ${position + 1}` : time(position))) };
  }
}

/**
 * What a session is called in a legend.
 * @param {number} place
 * @param {Compared[]} sessions
 */
function titleOf(place, sessions) {
  return place === 0 ? "Before" : place === 1 ? "After" : sessions[place]?.name ?? "";
}

/** @param {Series} series in steps, or in picoseconds */
function lengthOf({ steps, start_ps: start, end_ps: end }) {
  return steps || end - (start[0] ?? end);
}

/**
 * The bin at a position; -1 after the end.
 * @param {Series} series
 * @param {number} position
 */
function binAt(series, position) {
  const length = lengthOf(series);
  if (position >= length) return -1;
  const starts = series.steps ? series.first : series.start_ps;
  const wanted = series.steps ? position : position + (starts[0] ?? 0);
  let low = 0, high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}
