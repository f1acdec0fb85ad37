/** What is known of each rank in each step, as typed arrays; and the colors that numbers have. */

import { ramp } from "../../core/colors.js";
import { bytes, time } from "../../core/format.js";

/**
 * @typedef {{unit: number, rows: (number | null)[][]}} Matrix
 * @typedef {object} JobSteps the answer of `job_steps`
 * @property {string[]} steps
 * @property {{rank: (number | null)[], title: string[], host: string[], machine: (string | null)[], stage: number[] | null, peak_bytes: (number | null)[]}} ranks
 * @property {{title: string, labels: string[], of: (number | null)[]}[]} groups
 * @property {Matrix | null} step_ps
 * @property {Matrix | null} excess_ps
 * @property {Matrix | null} work_ps where a rank has no peers
 * @property {Matrix | null} waiting_ps
 * @property {Matrix | null} late_ps
 * @property {Matrix | null} peak_bytes
 * @property {(number | null)[]} [begin_ps] of one step, on each rank's own clock
 * @property {(number | null)[]} [end_ps]
 */
/** @typedef {"excess" | "work" | "step" | "waiting" | "late" | "peak"} Name */
/** @typedef {{name: Name, text: string, help: string, isDiverging: boolean}} Kind */

/** @type {readonly Kind[]} */
export const MEASURES = [
  { name: "excess", text: "Work beyond peers", isDiverging: true,
    help: "a rank's own work in a step, without collectives, beyond the median of its peers" },
  { name: "work", text: "Own work", isDiverging: false,
    help: "the step without what it spends in collectives with nothing to do beside" },
  { name: "step", text: "Step time", isDiverging: false, help: "to the begin of the next step" },
  { name: "waiting", text: "Waiting", isDiverging: false,
    help: "in collectives, until the last member came, with nothing to do beside" },
  { name: "late", text: "Lateness", isDiverging: true,
    help: "to the collectives of the step, after the median of the others; it may wait for others itself" },
  { name: "peak", text: "Peak memory", isDiverging: false,
    help: "the most that the fullest allocator has in use in a step; without times of the whole recording" },
];

/** Less than this part of a step is no color of its own: noise is not news. */
const LEAST_SHARE = 0.05;
/** What is beyond so many times what nearly all have does not make all else pale. */
const BEYOND = 3;
const NEARLY_ALL = 0.995;

/**
 * One number for each rank and column: `values` row by row, NaN where it is not known. Colors go from
 * `low` to `high`, of diverging ones from -high to high.
 */
export class Measure {
  /** @type {Int16Array | null} */
  #shades = null;
  /** @type {Float64Array | null} */
  #means = null;

  /**
   * @param {Kind} kind
   * @param {Float64Array} values
   * @param {number} columns
   * @param {number} usual the median step, in ps
   * @param {boolean} isOfRank whether it is one number for each rank, of no step
   */
  constructor(kind, values, columns, usual, isOfRank = false) {
    this.kind = kind;
    this.isOfRank = isOfRank;
    this.values = values;
    this.columns = columns;
    this.rows = columns ? values.length / columns : 0;
    const known = values.filter((value) => !Number.isNaN(value)).sort();
    const sizes = kind.isDiverging ? known.map(Math.abs).sort() : known;
    const top = sizes.at(-1) ?? 0, most = sizes[Math.floor(NEARLY_ALL * (sizes.length - 1))] ?? 0;
    const floor = kind.name === "peak" ? 0 : LEAST_SHARE * usual;
    const isFrom0 = kind.isDiverging || kind.name === "waiting" || kind.name === "peak";
    this.low = isFrom0 ? 0 : known[0] ?? 0;
    const high = top - this.low > BEYOND * (most - this.low) && most > this.low ? BEYOND * (most - this.low)
      : top - this.low;
    this.high = this.low + Math.max(high, floor, 1);
    this.most = top;
    this.isKnown = known.length > 0;
    this.isWhole = known.length === values.length;
  }

  /**
   * Where a value lies on the colors, 0 to 255; -1 for what is not known.
   * @param {number} value
   */
  shade(value) {
    if (Number.isNaN(value)) return -1;
    const share = (value - this.low) / (this.high - this.low);
    const place = this.kind.isDiverging ? (share + 1) / 2 : share;
    return Math.max(0, Math.min(255, Math.round(255 * place)));
  }

  /** The place of each value on the colors. */
  get shades() {
    this.#shades ??= Int16Array.from(this.values, (value) => this.shade(value));
    return this.#shades;
  }

  /** The colors of the 256 places, as pixels. */
  colors() {
    return ramp(this.kind.isDiverging);
  }

  /** @param {number} value */
  text(value) {
    if (Number.isNaN(value)) return "not known";
    return this.kind.name === "peak" ? bytes(value) : time(value);
  }

  /**
   * The mean of each row, NaN where nothing of it is known.
   * @returns {Float64Array}
   */
  means() {
    if (this.#means) return this.#means;
    const result = new Float64Array(this.rows);
    for (let row = 0; row < this.rows; row++) {
      let sum = 0, many = 0;
      for (let at = row * this.columns; at < (row + 1) * this.columns; at++) {
        const value = this.values[at] ?? NaN;
        if (Number.isNaN(value)) continue;
        sum += value;
        many += 1;
      }
      result[row] = many ? sum / many : NaN;
    }
    this.#means = result;
    return result;
  }
}

/**
 * Those that have something to show, by name.
 * @param {JobSteps} data
 * @returns {Map<Name, Measure>}
 */
export function measuresOf(data) {
  const ranks = data.ranks.title.length, steps = data.steps.length;
  const walls = flat(data.step_ps, ranks, steps).filter((value) => !Number.isNaN(value)).sort();
  const usual = walls[walls.length >> 1] ?? 0;
  /** @type {Map<Name, Measure>} */
  const result = new Map();
  for (const kind of MEASURES) {
    const isOfRank = kind.name === "peak" && !data.peak_bytes;
    const values = isOfRank
      ? Float64Array.from(data.ranks.peak_bytes, (value) => value ?? NaN)
      : flat(kind.name === "peak" ? data.peak_bytes : data[`${kind.name}_ps`], ranks, steps);
    const measure = new Measure(kind, values, isOfRank ? 1 : steps, usual, isOfRank);
    if (measure.isKnown) result.set(kind.name, measure);
  }
  return result;
}

/**
 * @param {Matrix | null} matrix
 * @param {number} ranks
 * @param {number} steps
 */
function flat(matrix, ranks, steps) {
  const result = new Float64Array(ranks * steps).fill(NaN);
  matrix?.rows.forEach((row, rank) => row.forEach((value, step) => {
    if (value !== null) result[rank * steps + step] = value * matrix.unit;
  }));
  return result;
}
