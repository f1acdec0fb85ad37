/** Questions to the tool `timeline`: of the host that is shown, or of all hosts on one clock. */

import { readColumns } from "../../core/columns.js";

/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */
/** @typedef {import("../../shell/context.js").Context} Context */

/** @type {WeakMap<Context, import("./stack.js").Stack>} */
const stacks = new WeakMap();

/**
 * From now on questions of this view are about all hosts.
 * @param {Context} context
 * @param {import("./stack.js").Stack | null} stack null: about the host that is shown
 */
export function setStack(context, stack) {
  if (stack) stacks.set(context, stack);
  else stacks.delete(context);
}

/** @param {Context} context */
export function stackOf(context) {
  return stacks.get(context) ?? null;
}

/**
 * The columns of an answer, by name.
 * @param {Context} context
 * @param {Query & {view: string}} query
 * @param {AbortSignal} [signal] besides the view's own
 * @returns {Promise<Record<string, any>>}
 */
export async function askTimeline(context, query, signal = context.signal) {
  const stack = stacks.get(context);
  return stack ? stack.ask(query, signal) : askHost(context, query, signal);
}

/**
 * Of one host; the query may name another than the one that is shown.
 * @param {Context} context
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export async function askHost(context, query, signal) {
  const { data } = await context.toolBytes("timeline", { format: "bin", ...query }, signal);
  return readColumns(data);
}
