/** What stands in place of the view where a profile has no records of allocations. */

import { h } from "../../core/dom.js";
import { empty, notices } from "../../core/states.js";
import { WORDING } from "../../core/wording.js";

/** The remark that the view itself makes of a profile without memory. */
const NOTHING = "no_memory_events";

/** @param {{warnings: any[], notes: string[]}} answer */
export function nothing({ warnings, notes }) {
  return h("div", {}, notices({ notes, warnings: warnings.filter((one) =>
    typeof one === "string" || one.kind !== NOTHING) }), empty(WORDING.no_memory,
    WORDING.records_memory));
}
