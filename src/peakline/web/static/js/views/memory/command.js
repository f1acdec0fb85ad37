/** The `peakline` command that gives what a tool answers. */

import { commandOf, quoted } from "../../core/command.js";

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {string} tool
 * @param {Record<string, string | number | boolean | null | undefined>} query its parameters
 */
export async function toolCommand(context, tool, query) {
  const given = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `-p ${quoted(`${name}=${value}`)}`);
  return [await commandOf(context, `tool ${tool}`), ...given].join(" ");
}
