/**
 * The steps of a device, as much of them as is shown: rows by their place, and columns for so many
 * pixels. Of very many steps the service sends what an answer's bounds allow, and the rest when it
 * comes into view.
 */

/** So many steps come as rows at once; of more the table fetches what is seen. */
export const FEW = 1000;
const PAGE = 200;
export const MOST_WIDTH = 2048;

/** @typedef {import("./facts.js").Step} Step */
/** @typedef {import("./facts.js").Envelope} Envelope */
/** @typedef {import("./facts.js").StepColumns} StepColumns */
/**
 * One column of the envelope; places are among the device's steps, `last` is the last one itself.
 * @typedef {object} Bin
 * @property {number} first
 * @property {number} last
 * @property {number} longest
 * @property {number} min
 * @property {number} median
 * @property {number} mean
 * @property {number} max
 * @property {number} id of the longest
 * @property {string} name of the longest
 * @property {number} slow how many are slow
 * @property {boolean} isSlow whether the longest is
 * @property {boolean} isWarmUp
 * @property {boolean} isCutOff
 * @property {number} place among the columns
 */

export class StepSource {
  /** @type {Map<number, Step>} */
  #rows = new Map();
  /** @type {Map<number, Step>} */
  #byId = new Map();

  /**
   * @param {import("./facts.js").Facts} facts
   * @param {Envelope} about
   */
  constructor(facts, about) {
    this.facts = facts;
    this.about = about;
    this.device = about.device ?? "";
    this.total = about.steps;
    /** All columns of the answer that came first: of few steps one for each. */
    this.whole = new Columns(about.columns);
    this.#keep(about.rows);
    if (about.step) this.#keep([about.step]);
  }

  /** Whether all rows are here. */
  get isWhole() {
    return this.#rows.size >= this.total;
  }

  /** All rows in order of time, where all are here. */
  get rows() {
    return Array.from({ length: this.total }, (_, place) => /** @type {Step} */ (this.#rows.get(place)));
  }

  /** @param {number} id of a step; undefined: it is not here yet */
  known(id) {
    return this.#byId.get(id);
  }

  /**
   * The row of a step, by id or name; undefined: there is none.
   * @param {string | number} step
   * @returns {Promise<Step | undefined>}
   */
  async find(step) {
    const here = this.#byId.get(Number(step)) ?? [...this.#rows.values()].find(({ name }) => name === step);
    if (here || this.isWhole) return here;
    const { step: result } = await this.#ask({ step, width: 0, limit: 0 });
    if (result) this.#keep([result]);
    return result ?? undefined;
  }

  /**
   * The row at a place.
   * @param {number} place
   * @returns {Promise<Step | undefined>}
   */
  async at(place) {
    const here = this.#rows.get(place);
    if (here || place < 0 || place >= this.total) return here;
    const { rows } = await this.#ask({ first: place, last: place + 1, width: 0, limit: 1 });
    this.#keep(rows);
    return this.#rows.get(place);
  }

  /**
   * The ids of the steps before and after one.
   * @param {Step} step
   * @returns {Promise<{previous: number | null, next: number | null}>}
   */
  async beside({ place }) {
    const [before, after] = await Promise.all([this.at(place - 1), this.at(place + 1)]);
    return { previous: before?.step_id ?? null, next: after?.step_id ?? null };
  }

  /**
   * The columns of the steps from one place to before another, for so many pixels.
   * @param {number} first
   * @param {number} last
   * @param {number} width
   * @param {AbortSignal} [signal]
   */
  async columns(first, last, width, signal) {
    const { columns } = await this.#ask({ first, last, width: Math.min(width, MOST_WIDTH), limit: 0 }, signal);
    return new Columns(columns);
  }

  /**
   * Rows in another order, from `page * PAGE` on.
   * @param {string} sort
   * @param {number} page
   */
  async page(sort, page) {
    const { rows } = await this.#ask({ sort, offset: page * PAGE, limit: PAGE, width: 0 });
    this.#keep(rows);
    return rows;
  }

  /**
   * @param {Record<string, string | number | null>} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<Envelope>}
   */
  async #ask(query, signal) {
    return (await this.facts.steps({ device: this.device || null, ...query }, signal)).data;
  }

  /** @param {Step[]} rows */
  #keep(rows) {
    for (const row of rows) {
      this.#rows.set(row.place, row);
      this.#byId.set(row.step_id, row);
    }
  }
}

/** Columns of steps as the service sends them. */
export class Columns {
  /** @param {StepColumns} data */
  constructor(data) {
    this.data = data;
    this.count = data.first.length;
    this.first = data.first[0] ?? 0;
    this.last = data.last[this.count - 1] ?? 0;
  }

  /** A row for each. @returns {import("../../core/exporting.js").Rows} */
  get rows() {
    const { parts, ...own } = this.data;
    const all = Object.entries({ ...own,
      ...Object.fromEntries(Object.entries(parts).map(([name, values]) => [`${name}_ps`, values])) });
    return { columns: all.map(([name]) => name),
      rows: this.data.first.map((_, place) => all.map(([, values]) => values[place] ?? null)) };
  }

  /** Whether every column is one step. */
  get isSingle() {
    return this.last - this.first === this.count;
  }

  /** @param {number} place of a column @returns {Bin | null} */
  bin(place) {
    const { data } = this;
    const first = data.first[place];
    if (first === undefined) return null;
    return {
      place, first, last: (data.last[place] ?? 0) - 1, longest: data.longest[place] ?? 0,
      min: data.min_ps[place] ?? 0, median: data.median_ps[place] ?? 0,
      mean: data.mean_ps[place] ?? 0, max: data.max_ps[place] ?? 0, id: data.step_id[place] ?? -1,
      name: data.name[place] || `step ${data.step_id[place]}`, slow: data.slow[place] ?? 0,
      isSlow: data.is_slow[place] ?? false, isWarmUp: data.is_warm_up[place] ?? false,
      isCutOff: data.is_cut_off[place] ?? false,
    };
  }

  /** @param {number} step a place of a step @returns {Bin | null} the column that it is in */
  around(step) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.data.last[middle] ?? 0) <= step) low = middle + 1;
      else high = middle;
    }
    const bin = this.bin(low);
    return bin && bin.first <= step ? bin : null;
  }

  /**
   * The columns that hold steps from one place to before another.
   * @param {number} from
   * @param {number} to
   */
  between(from, to) {
    /** @type {Bin[]} */
    const result = [];
    for (let place = this.around(Math.max(from, this.first))?.place ?? this.count; place < this.count; place++) {
      const bin = this.bin(place);
      if (!bin || bin.first >= to) break;
      result.push(bin);
    }
    return result;
  }

  /**
   * How much of a column goes to a part.
   * @param {Bin} bin
   * @param {string} part
   */
  part(bin, part) {
    return this.data.parts[part]?.[bin.place] ?? 0;
  }
}

/** Rows of a table that are fetched page by page as they are seen. */
export class StepPages {
  /** @type {Step[]} with holes */
  rows = [];
  /** @type {Set<number>} */
  #requested = new Set();
  #sort = "";

  /**
   * @param {StepSource} source
   * @param {() => void} arrived
   * @param {(error: unknown) => void} failed
   */
  constructor(source, arrived, failed) {
    this.source = source;
    this.arrived = arrived;
    this.failed = failed;
  }

  /** @param {string} sort */
  order(sort) {
    this.#sort = sort;
    this.#requested.clear();
    this.rows = [];
    this.rows.length = this.source.total;
    void this.#fetch(0);
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  see(first, last) {
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) void this.#fetch(page);
  }

  /** @param {number} page */
  async #fetch(page) {
    if (this.#requested.has(page)) return;
    this.#requested.add(page);
    const sort = this.#sort, { rows } = this;
    try {
      const result = await this.source.page(sort || "start_ps", page);
      if (rows !== this.rows) return;
      result.forEach((row, place) => void (rows[page * PAGE + place] = row));
      this.arrived();
    } catch (error) {
      this.#requested.delete(page);
      this.failed(error);
    }
  }
}
