/** The event that a link means: by its name, or a moment, or both. The service finds it, or none. */

import { number } from "../../core/address.js";
import { isAbort } from "../../core/api.js";
import { time } from "../../core/format.js";
import { askTimeline } from "./ask.js";

/** @typedef {{search: string | null, at_ps: number | null, until_ps: number | null, device: string | null}} Meant */

/**
 * What an address means with `find` (a name), `pick` (a moment) and `device`; null where nothing.
 * @param {Record<string, string>} params
 * @returns {Meant | null}
 */
export function meantBy(params) {
  const search = params["find"] || null, at = number(params["pick"]);
  if (!search && at === null) return null;
  return { search, at_ps: at, until_ps: null, device: params["device"] || null };
}

/**
 * The event, and what is to be said of it.
 * @param {import("../../shell/context.js").Context} context
 * @param {Meant} meant
 * @returns {Promise<{found: import("./chosen.js").Named | null, text: string} | null>} null: left
 */
export async function findMeant(context, meant) {
  try {
    const data = await askTimeline(context, { view: "find", ...meant });
    return { found: data["found"], text: textOf(meant, data["how"][0], data["count"]) };
  } catch (error) {
    return isAbort(error) ? null : { found: null, text: `It was not found: ${
      error instanceof Error ? error.message : error}` };
  }
}

/**
 * @param {Meant} meant
 * @param {string} how
 * @param {number} count events of the name
 */
function textOf({ search, at_ps: at }, how, count) {
  const many = count > 1 ? `the longest of ${count.toLocaleString("en-US")} events of ${search}` : "";
  if (how === "longest") return many || `the only event of ${search}`;
  const when = at === null ? "" : time(at, 9);
  if (how === "begins") return `begins at ${when}`;
  if (how === "holds") return `runs at ${when}`;
  if (!search) return `No one event begins at ${when}: what runs then is in the lanes.`;
  if (at === null || !count) return `No event of this profile is called ${search}.`;
  return `None of the ${count.toLocaleString("en-US")} events called ${search} runs at ${when}.`;
}
