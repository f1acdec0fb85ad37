/** The `peakline` command that gives what the page shows. */

import { serverDocument } from "./server.js";

/** In place of a path that the server does not say. */
const LOGDIR = "LOGDIR";

/**
 * `peakline memory PATH --session S --host H --at 12ms`, with what is needed of it.
 * @param {import("../shell/context.js").Context} context
 * @param {string} verb with its own arguments before the path, such as `tool fit`
 * @param {Record<string, string | number | boolean | null | undefined>} [options] by their names
 *   without the dashes; true is one without a value, false, null and "" are left out
 */
export async function commandOf(context, verb, options = {}) {
  const { source, source_is_logdir: isLogdir } = await serverDocument();
  const path = await pathOf(context);
  /** @type {Record<string, string | number | boolean | null | undefined>} */
  const all = { session: !source || isLogdir ? context.session : "", host: context.host, ...options };
  /** @type {string[]} */
  const given = [];
  for (const [name, value] of Object.entries(all)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    given.push(`--${name}`);
    if (value !== true) given.push(quoted(String(value)));
  }
  return ["peakline", verb, quoted(path), ...given].join(" ");
}

/**
 * `peakline tool NAME PATH -p by=op`: what a tool answers.
 * @param {import("../shell/context.js").Context} context
 * @param {string} tool
 * @param {Record<string, string | number | boolean | null | undefined>} [query] its parameters
 */
export async function toolCommand(context, tool, query = {}) {
  const given = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `-p ${quoted(`${name}=${value}`)}`);
  return [await commandOf(context, `tool ${tool}`), ...given].join(" ");
}

/**
 * `peakline sql PATH 'select ...'`: the rows of a query.
 * @param {import("../shell/context.js").Context} context
 * @param {string} query
 * @param {string} [host] "" is all ranks
 */
export async function sqlCommand(context, query, host = context.host) {
  return `${await commandOf(context, "sql", { host })} ${quoted(query)}`;
}

/**
 * `peakline diff LOGDIR LOGDIR --session-before S --session-after T`.
 * @param {import("../shell/context.js").Context} context
 * @param {Record<string, string>} compared `first`, `second` and the hosts of each, as in the address
 */
export async function diffCommand(context, { first, second, first_host: before, second_host: after }) {
  const path = quoted(await pathOf(context));
  return commandOf(context, `diff ${path}`, { host: null, "session-before": first,
    "session-after": second, "host-before": before, "host-after": after });
}

/** Where the profiles are, as far as the server says it. @param {import("../shell/context.js").Context} context */
async function pathOf(context) {
  const { source, roots } = await serverDocument();
  return source ?? (roots.length > 1 ? context.root || roots[0] || LOGDIR : LOGDIR);
}

/**
 * A word of a command as a POSIX shell takes it.
 * @param {string} text
 */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
