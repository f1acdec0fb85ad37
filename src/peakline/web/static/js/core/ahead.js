/** Answers that are on their way before the view that needs them is there. */

import { json, sessionPath } from "./api.js";

/** @typedef {import("./api.js").Asked["query"]} Query */
/** @typedef {{tool: string, query: Query}} Question */

export class Ahead {
  /** @type {Map<string, Promise<import("./api.js").Answer<any>>>} */
  #coming = new Map();

  /**
   * Send the first questions of a view about a session.
   * @param {import("./address.js").Address} address
   * @param {Question[]} questions
   * @param {AbortSignal} signal
   */
  constructor({ session, params }, questions, signal) {
    for (const { tool, query } of questions) {
      const whole = { root: params["root"] ?? "", host: params["host"] ?? "", ...query };
      const answer = json(sessionPath(session, "tools", tool), { query: whole, signal });
      // Nobody may want it: the view says what is wrong when it does.
      answer.catch(() => undefined);
      this.#coming.set(keyOf(tool, whole), answer);
    }
  }

  /**
   * The answer to a question that was sent ahead, for the first who wants it.
   * @param {string} tool
   * @param {Query} query
   */
  take(tool, query) {
    const key = keyOf(tool, query);
    const found = this.#coming.get(key);
    this.#coming.delete(key);
    return found;
  }
}

/** @param {string} tool @param {Query} query */
function keyOf(tool, query = {}) {
  const given = Object.entries(query).filter(([, value]) =>
    value !== null && value !== undefined && value !== "");
  return JSON.stringify([tool, ...given.map(([name, value]) => [name, String(value)]).sort()]);
}
