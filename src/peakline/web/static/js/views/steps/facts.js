/** What several parts of the view ask for, asked once. */

/**
 * @typedef {object} Step a row of `step_envelope`, with `*_ps` of its parts
 * @property {number} place among the steps of its device, in order of time
 * @property {boolean} is_slow
 * @property {boolean} is_warm_up slow, and one of the first of its name
 * @property {string | null} says how many times the median it takes, and for what; null of others
 * @property {number} step_id
 * @property {string} name
 * @property {string | null} device
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} wall_ps
 * @property {number} gap_before_ps
 * @property {boolean} is_cut_off whether the record does not hold it whole
 * @property {string | null} found_by `mark`, `annotation`, `device` or `function`
 */
/**
 * @typedef {object} Variation of the whole steps of a device that have one name
 * @property {string} [host]
 * @property {string | null} device
 * @property {string} name what they are called without their numbers
 * @property {number} steps
 * @property {number} mean_ps
 * @property {number} median_ps
 * @property {number} p95_ps
 * @property {number} min_ps
 * @property {number} max_ps
 * @property {number} coefficient
 * @property {number} slow how many take twice the median or more, without the first ones
 * @property {number} warm_up how many of the first ones do
 */
/** @typedef {{variation: (Omit<Variation, "slow" | "warm_up"> & {slow: {is_first: boolean}[]})[], straggler_text: string}} HostsBreakdown */
/**
 * @typedef {object} StepColumns of the envelope, an entry per column
 * @property {number[]} first
 * @property {number[]} last exclusive
 * @property {number[]} min_ps
 * @property {number[]} median_ps
 * @property {number[]} mean_ps
 * @property {number[]} max_ps
 * @property {number[]} longest the place of the longest step
 * @property {number[]} step_id its id
 * @property {(string | null)[]} name
 * @property {number[]} slow how many are slow
 * @property {boolean[]} is_slow whether the longest is
 * @property {boolean[]} is_warm_up
 * @property {boolean[]} is_cut_off
 * @property {Record<string, number[]>} parts means
 */
/**
 * @typedef {object} Envelope the answer of `step_envelope`
 * @property {string | null} device
 * @property {string[]} devices
 * @property {number} steps
 * @property {string | null} found_by
 * @property {string[]} parts those that a step of the device has
 * @property {{steps: number, parts: Record<string, number>} | null} mean
 * @property {number | null} shortest the id of the shortest whole step
 * @property {StepColumns} columns
 * @property {Step | null} step the one that was looked for
 * @property {Step[]} rows
 * @property {number} rows_total
 * @property {Variation[]} variation
 * @property {string} straggler_text
 */

/**
 * What a step is called without its number, as the service compares steps: `train` of `train 170`.
 * @param {string} name
 */
export function nameOf(name) {
  return name.replace(/(?:[ #;:_-]*[0-9]+)+$/, "");
}

export class Facts {
  /** @type {Map<string, Promise<any>>} */
  #requested = new Map();

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
  }

  /**
   * Steps of a device of the host that is shown.
   * @param {Record<string, string | number | null>} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("../../core/api.js").Answer<Envelope>>}
   */
  steps(query, signal) {
    const ask = () => this.context.tool("step_envelope", query, signal);
    return signal ? ask() : this.#once(`steps ${JSON.stringify(query)}`, ask);
  }

  /**
   * The first steps, of all devices.
   * @param {number} limit
   * @returns {Promise<{data: {steps: Step[]}}>}
   */
  firstSteps(limit) {
    return this.#once(`first ${limit}`, () => this.context.tool("step_breakdown", { limit }));
  }

  /** @returns {Promise<import("../../core/api.js").Answer<HostsBreakdown>>} of all hosts */
  breakdownOfHosts() {
    return this.#once("hosts", () => this.context.tool("step_breakdown", { host: "", limit: 0 }));
  }

  /** @returns {Promise<import("../../core/finding.js").Finding[]>} of time, of the host that is shown */
  async findings() {
    return (await this.#times()).flatMap((/** @type {any} */ host) => host.findings);
  }

  /** @returns {Promise<import("./input_part.js").Waits | null>} of the one host that steps ran on */
  async inputWaits() {
    const waits = (await this.#times()).map((/** @type {any} */ host) => host.input).filter(Boolean);
    return waits.length === 1 ? waits[0] : null;
  }

  #times() {
    return this.#once("times", async () =>
      (await this.context.tool("time_findings", { steps: false })).data.hosts);
  }

  /** @returns {Promise<string[]>} the tables that SQL may ask for */
  async tables() {
    return (await this.#once("tables", () => this.context.resource(["tables"]))).data;
  }

  /**
   * @param {string | null} step its id; null: the one of median time
   * @param {string | null} device null: the one whose part of the step ends last
   * @returns {Promise<import("../../core/api.js").Answer<import("./critical_part.js").Path>>}
   */
  criticalPath(step, device) {
    return this.#once(`path ${step} ${device}`,
      () => this.context.tool("critical_path", { step, device }));
  }

  /**
   * Time, cost and memory of ops.
   * @param {string | null} step its id or name; null: of all that was recorded
   * @param {string | null} last to this one
   * @param {string | null} plane the name of a device or a host; null: wherever they ran
   * @returns {Promise<import("../../core/api.js").Answer<import("./ops_part.js").OpTimes>>}
   */
  opTimes(step, last, plane) {
    return this.#once(`ops ${step} ${last} ${plane}`,
      () => this.context.tool("op_time", { step, last, plane }));
  }

  /**
   * @param {string} query
   * @returns {Promise<import("../../core/api.js").Answer<any[]>>}
   */
  sql(query) {
    return this.#once(`sql ${query}`, () => this.context.sql(query));
  }

  /**
   * @param {string} key
   * @param {() => Promise<any>} ask
   */
  #once(key, ask) {
    const known = this.#requested.get(key);
    if (known) return known;
    const answer = ask();
    this.#requested.set(key, answer);
    // What failed is asked again the next time.
    answer.catch(() => void this.#requested.delete(key));
    return answer;
  }
}
