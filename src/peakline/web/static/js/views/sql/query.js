/** Asking a query for as many rows as can be shown. */

import { request, sessionPath, noticesOf } from "../../core/api.js";

/** A table of more rows is no longer read by a person: a query can sort, group and limit. */
export const MOST_ROWS = 10_000;

/**
 * @typedef {object} Found
 * @property {any[]} rows at most MOST_ROWS
 * @property {string[]} names of the columns, in the query's order
 * @property {number} total how many rows there are
 * @property {number} ms how long the answer took
 * @property {(import("../../core/api.js").Warning | string)[]} warnings
 * @property {string[]} notes
 */

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {string} host "" is the only one, or all ranks
 * @param {string} query
 * @param {string} format
 * @param {number} [mostRows] by default all
 * @returns {import("../../core/api.js").Asked}
 */
export function asking(context, host, query, format, mostRows) {
  return {
    method: "POST", query: { root: context.root },
    body: { query, format, ...(format === "json" ? { large_integers: "string" } : {}),
      // What is downloaded is opened in a spreadsheet.
      ...(format === "csv" ? { safe_csv: true } : {}),
      ...(mostRows === undefined ? {} : { max_rows: mostRows }),
      ...(host ? { host } : {}) },
  };
}

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {string} host as `asking`
 * @param {string} query
 * @param {AbortSignal} signal
 * @returns {Promise<Found>}
 */
export async function ask(context, host, query, signal) {
  const began = performance.now();
  const response = await request(sessionPath(context.session, "sql"),
    { ...asking(context, host, query, "json", MOST_ROWS), signal });
  const text = await response.text();
  // An array with an object on each line.
  const first = text.indexOf("{");
  const names = first < 0 ? [] : keysOf(text.slice(first, text.indexOf("\n", first)));
  return { rows: JSON.parse(text), names, total: Number(response.headers.get("Peakline-Rows")),
    ms: performance.now() - began, ...noticesOf(response) };
}

/**
 * The keys of a JSON object in the order of its text: JavaScript would put numbers before words.
 * @param {string} text
 * @returns {string[]}
 */
function keysOf(text) {
  const keys = [];
  let depth = 0;
  for (const { 0: token, 1: key } of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (key && depth === 1) keys.push(JSON.parse(key));
  }
  return keys;
}
