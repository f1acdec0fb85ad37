/** The sessions that the list shows, fetched page by page as they come into view. */

import { isAbort, sessionPage } from "../../core/api.js";
import { MOST_SORTED, PAGE, pageQuery } from "./question.js";

/** @typedef {import("../../core/api.js").ListedSession} ListedSession */
/** @typedef {import("./question.js").Question} Question */

/** Rows that are scrolled past are not worth a request. */
const PAUSE_MS = 60;

export class Pages {
  /** By their place; where a page did not come yet, there are holes. @type {ListedSession[]} */
  sessions = [];
  /** How many match, of how many; -1 before the first answer. */
  matching = -1;
  all = -1;
  /** @type {Question} */
  #question = { root: "", search: "", sort: "" };
  #size = PAGE;
  /** The pages that came, and those that are on their way. @type {Set<number>} */
  #known = new Set();
  #ends = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #seen = { first: 0, last: 1 };

  /**
   * @param {AbortSignal} signal
   * @param {() => void} arrived
   * @param {(error: unknown) => void} failed
   */
  constructor(signal, arrived, failed) {
    this.signal = signal;
    this.arrived = arrived;
    this.failed = failed;
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /**
   * Begin anew; what is shown stays until the answer comes.
   * @param {Question} question
   * @param {boolean} [whole] the first thousand at once
   */
  ask(question, whole = false) {
    const isSame = Object.entries(question).every(([name, value]) =>
      this.#question[/** @type {keyof Question} */ (name)] === value);
    this.#question = question;
    this.#size = whole ? MOST_SORTED : PAGE;
    this.#ends.abort();
    this.#ends = new AbortController();
    this.#known.clear();
    clearTimeout(this.#timer);
    return this.#fetch(isSame && !whole ? Math.floor(this.#seen.first / PAGE) : 0, true);
  }

  /**
   * Rows came into view: those that are missing are fetched.
   * @param {number} first
   * @param {number} last
   */
  see(first, last) {
    this.#seen = { first, last };
    clearTimeout(this.#timer);
    if (this.#missing().length) {
      this.#timer = setTimeout(() => {
        for (const page of this.#missing()) void this.#fetch(page, false);
      }, PAUSE_MS);
    }
  }

  #missing() {
    if (this.#size !== PAGE || this.matching < 0) return [];
    const { first, last } = this.#seen, end = Math.min(last, this.matching);
    const result = [];
    for (let page = Math.floor(first / PAGE); page * PAGE < end; page++) {
      if (!this.#known.has(page)) result.push(page);
    }
    return result;
  }

  /**
   * @param {number} page
   * @param {boolean} isNew
   */
  async #fetch(page, isNew) {
    const signal = AbortSignal.any([this.#ends.signal, this.signal]);
    const offset = page * this.#size;
    this.#known.add(page);
    try {
      const results = await sessionPage(pageQuery(this.#question, offset, this.#size), signal);
      if (signal.aborted) return;
      if (isNew || results.matching !== this.matching) {
        // Other sessions than when the rest came: their places are not those any more.
        this.sessions = [];
        this.#known = new Set([page]);
      }
      this.sessions.length = this.#size === PAGE ? results.matching : results.sessions.length;
      results.sessions.forEach((session, place) => void (this.sessions[offset + place] = session));
      this.matching = results.matching;
      this.all = results.all;
      this.arrived();
      this.see(this.#seen.first, this.#seen.last);
    } catch (error) {
      if (isAbort(error)) return;
      this.#known.delete(page);
      this.failed(error);
    }
  }
}
