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
  const { source, source_is_logdir: isLogdir, roots } = await serverDocument();
  const path = source ?? (roots.length > 1 ? context.root || roots[0] || LOGDIR : LOGDIR);
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
 * A word of a command as a POSIX shell takes it.
 * @param {string} text
 */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
