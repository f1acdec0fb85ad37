/** Answers that are on their way before the view that needs them is there. */

import { json, sessionPath } from "./api.js";

/** @typedef {import("./api.js").Asked["query"]} Query */
/** @typedef {{tool: string, query: Query}} Question */
/** @typedef {import("./api.js").Answer<any>} Answer */

export class Ahead {
  /** @type {Map<string, Promise<Answer | null>>} */
  #coming = new Map();

  /**
   * Send the first questions of a view about a session, once it is known that the session has the
   * tools and which of its hosts is meant.
   * @param {import("./address.js").Address} address
   * @param {Question[]} questions
   * @param {Promise<{hosts: string[], tools: string[]}>} document of the session
   * @param {AbortSignal} signal
   */
  constructor({ session, params }, questions, document, signal) {
    for (const { tool, query } of questions) {
      const whole = { root: params["root"] ?? "", host: params["host"] ?? "", ...query };
      const answer = document.then(({ hosts, tools }) => {
        if (signal.aborted || !tools.includes(tool) || (hosts.length > 1 && !whole.host)) return null;
        return json(sessionPath(session, "tools", tool), { query: whole, signal });
      });
      // Nobody may want it: the view says what is wrong when it does.
      answer.catch(() => undefined);
      this.#coming.set(keyOf(tool, whole), answer);
    }
  }

  /**
   * The answer to a question that was to be sent ahead, for the first who wants it; null where it
   * was not.
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
