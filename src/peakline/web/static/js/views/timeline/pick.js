/** The event that a link means: by its name, or a moment, or both. The service finds it, or none. */

import { number } from "../../core/address.js";
import { isAbort } from "../../core/api.js";
import { time, worded } from "../../core/format.js";
import { askTimeline } from "./ask.js";
import { WORDING } from "../../core/wording.js";

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
    return isAbort(error) ? null : { found: null, text: worded(WORDING.pick.failed,
      { reason: error instanceof Error ? error.message : String(error) }) };
  }
}

/**
 * @param {Meant} meant
 * @param {string} how
 * @param {number} count events of the name
 */
function textOf({ search, at_ps: at }, how, count) {
  const says = WORDING.pick;
  const text = how === "longest" ? (count > 1 ? says.longest : says.only) : how === "begins" ? says.begins
    : how === "holds" ? says.holds : !search ? says.none_begins : at === null || !count ? says.no_name : says.none_then;
  return worded(text, { search: search ?? "", events: count.toLocaleString("en-US"),
    when: at === null ? "" : time(at, 9) });
}
