/** What several parts of the view ask for, asked once. */

/**
 * @typedef {object} Step a row of `step_breakdown`, with `*_ps` of its parts
 * @property {number} step_id
 * @property {string} name
 * @property {string | null} device
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} wall_ps
 * @property {number} gap_before_ps
 */
/**
 * @typedef {object} Variation
 * @property {string} [host]
 * @property {string | null} device
 * @property {number} steps
 * @property {number} mean_ps
 * @property {number} median_ps
 * @property {number} p95_ps
 * @property {number} min_ps
 * @property {number} max_ps
 * @property {number} coefficient
 * @property {{step_id: number, name: string, wall_ps: number, beyond_ps: number, part: string, part_beyond_ps: number}[]} slow
 */
/** @typedef {import("../../core/straggler.js").Straggler} Straggler */
/** @typedef {{steps: Step[], variation: Variation[], straggler: Straggler | null, device_stragglers?: Straggler[]}} Breakdown */

export class Facts {
  /** @type {Map<string, Promise<any>>} */
  #asked = new Map();

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
  }

  /** @returns {Promise<import("../../core/api.js").Answer<Breakdown>>} of the host that is shown */
  breakdown() {
    return this.#once("breakdown", () => this.context.tool("step_breakdown"));
  }

  /** @returns {Promise<import("../../core/api.js").Answer<Breakdown>>} of all hosts */
  breakdownOfHosts() {
    return this.#once("hosts", () => this.context.tool("step_breakdown", { host: "" }));
  }

  /** @returns {Promise<import("../../core/finding.js").Finding[]>} of time, of the host that is shown */
  findings() {
    return this.#once("findings", async () => {
      const { data } = await this.context.tool("time_findings", { steps: false });
      return data.hosts.flatMap((/** @type {any} */ host) => host.findings);
    });
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
    const known = this.#asked.get(key);
    if (known) return known;
    const answer = ask();
    this.#asked.set(key, answer);
    // What failed is asked again the next time.
    answer.catch(() => void this.#asked.delete(key));
    return answer;
  }
}
