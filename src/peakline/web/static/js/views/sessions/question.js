/** What the list asks the service for. */

/** @typedef {{root: string, search: string, sort: string}} Question */

/** Sessions of a page. */
export const PAGE = 100;
/** Of whatever only the profiles say, so many sessions are sorted. */
export const MOST_SORTED = 1000;
const LATER = ["duration", "steps", "peak", "findings"];

/**
 * Whether only the profiles say what it is sorted by, and not the service.
 * @param {string} sort
 */
export function isSortedLater(sort) {
  return LATER.includes(sort.replace(/^-/, ""));
}

/**
 * The log directory that is shown where the address names `root`.
 * @param {string} root
 * @param {import("../../core/server.js").ServerDocument} server
 */
export function rootOf(root, { roots }) {
  return root || (roots.length > 1 ? roots[0] ?? "" : "");
}

/**
 * @param {string} root
 * @param {Record<string, string>} params of the address
 * @returns {Question}
 */
export function questionOf(root, { q = "", sort = "" }) {
  return { root, search: q.trim(), sort: isSortedLater(sort) ? "" : sort };
}

/**
 * The first page of the list, as the address wants it.
 * @param {Record<string, string>} params
 * @param {import("../../core/server.js").ServerDocument} server
 */
export function firstPage(params, server) {
  const limit = isSortedLater(params["sort"] ?? "") ? MOST_SORTED : PAGE;
  return pageQuery(questionOf(rootOf(params["root"] ?? "", server), params), 0, limit);
}

/**
 * @param {Question} question
 * @param {number} offset
 * @param {number} limit
 * @returns {Question & {offset: number, limit: number, tools: false}}
 */
export function pageQuery(question, offset, limit) {
  return { ...question, offset, limit, tools: false };
}
