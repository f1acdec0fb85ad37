/** Asking a query: its rows are read as they come, and only as many kept as can be shown. */

import { request, sessionPath, told } from "../../core/api.js";

/** A table of more rows is no longer read by a person: a query can sort, group and limit. */
export const MOST_ROWS = 10_000;
const TELL_EVERY = 20_000;

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
 * @param {string} query
 * @param {string} format
 * @returns {import("../../core/api.js").Asked}
 */
export function asking(context, query, format) {
  return {
    method: "POST", query: { root: context.root },
    body: { query, format, ...(format === "json" ? { large_integers: "string" } : {}),
      ...(context.host ? { host: context.host } : {}) },
  };
}

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {string} query
 * @param {AbortSignal} signal
 * @param {(rows: number) => void} progress told of how many rows came so far
 * @returns {Promise<Found>}
 */
export async function ask(context, query, signal, progress) {
  const began = performance.now();
  const response = await request(sessionPath(context.session, "sql"),
    { ...asking(context, query, "json"), signal });
  /** @type {any[]} */
  const rows = [];
  /** @type {string[]} */
  let names = [];
  let total = 0;
  for await (const line of linesOf(response)) {
    // An array with an object on each line.
    if (!line.startsWith("{")) continue;
    total += 1;
    if (total > MOST_ROWS) {
      if (total % TELL_EVERY === 0) progress(total);
      continue;
    }
    const text = line.replace(/,\s*$/, "");
    if (total === 1) names = keysOf(text);
    rows.push(JSON.parse(text));
  }
  return { rows, names, total, ms: performance.now() - began, ...told(response) };
}

/** @param {Response} response */
async function* linesOf(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (rest + (value ?? "")).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
    if (done) break;
  }
  if (rest) yield rest;
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
