/** The facts about the moment looked at. */

import { announce, fill, h } from "../../core/dom.js";
import { bytes, percent, time } from "../../core/format.js";
import { stepName } from "./rows.js";
import { WORDING } from "../../core/wording.js";

/** @type {Record<string, number>} */
const UNITS = { ps: 1, ns: 1e3, us: 1e6, "µs": 1e6, "μs": 1e6, ms: 1e9, s: 1e12 };
const TIME = /^\s*([\d,]+(?:\.\d+)?)\s*(ps|ns|us|µs|μs|ms|s)\s*$/i;
/** A viewport around a moment in the timeline: a thousandth of the profile. */
const AROUND = 1e-3;

/**
 * A time as people write it, such as `12.5 ms`, in picoseconds; null for anything else.
 * @param {string} text
 */
export function parseTime(text) {
  const match = TIME.exec(text);
  const unit = UNITS[(match?.[2] ?? "").toLowerCase()];
  return match && unit ? Math.round(Number((match[1] ?? "").replace(/,/g, "")) * unit) : null;
}

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {import("./model.js").Model} model
 * @param {import("./live.js").Change} change
 */
export function makeFacts(context, model, change) {
  const list = h("dl", { class: "facts" });
  const wrong = h("p", { class: "wrong", role: "alert", hidden: true });
  const field = h("input", { type: "text", id: "moment", spellcheck: "false", autocomplete: "off",
    "aria-label": "The moment, such as 12.5 ms" });
  const form = h("form", { class: "row-of", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    const at = parseTime(field.value);
    wrong.hidden = at !== null;
    wrong.textContent = at === null ? WORDING.memory.how_to_write : "";
    if (at !== null) change({ at }, true);
  } }, field, h("button", { type: "submit" }, "Go"));
  const element = h("div", { class: "stack" }, list, wrong);
  let hasTimeline = false;
  // An error of it is told where the page opens the session.
  context.document?.then(({ tools }) => void (hasTimeline = tools.includes("timeline")), () => undefined);
  return { element, show };

  /** @param {import("./model.js").Moment} moment */
  function show(moment) {
    const { allocator, isMoment, viewport } = model;
    const { at_ps: at, record_ps: record, bytes_in_use: used, fragmentation, is_peak: isPeak } = moment;
    wrong.hidden = true;
    if (document.activeElement !== field) field.value = at === null ? "" : time(at, 13);
    const peak = allocator?.peak_bytes ?? 0, capacity = allocator?.capacity_bytes;
    const step = moment.step_id === null ? "" : moment.step_name ?? stepName(moment.step_id, model);
    const around = Math.max((viewport.last - viewport.first) * AROUND, 1000);
    fill(list,
      !isMoment && fact("Moment", form),
      fact("In use", used === null ? WORDING.memory.not_known_yet : bytes(used),
        used === null ? "" : `${used.toLocaleString("en-US")} bytes`),
      used !== null && !isMoment && fact("To the peak", isPeak || used === peak ? WORDING.memory.is_peak
        : `${bytes(peak - used)} less`),
      capacity && used !== null && fact(WORDING.memory.capacity_left,
        bytes(capacity - used), `${percent((capacity - used) / capacity)} of ${bytes(capacity)}`),
      fragmentation !== null && fact("Fragmentation", percent(fragmentation),
        WORDING.memory.fragmentation),
      step && fact("Step", h("a", { href: context.link("steps", { name: step }) }, step)),
      record !== null && at !== null && record !== at && fact("Last record", time(record, 7),
        WORDING.memory.last_record),
      hasTimeline && at !== null && fact("What runs then", h("a", {
        href: context.link("timeline", { from: Math.max(Math.round(at - around), 0),
          to: Math.round(at + around), at, pick: record ?? at }) }, "in the timeline")));
    if (used !== null && at !== null) announce(`${bytes(used)} in use at ${time(at)}`);
  }
}

/**
 * @param {string} name
 * @param {Node | string} value
 * @param {string} [title]
 */
export function fact(name, value, title = "") {
  return h("div", {}, h("dt", {}, name), h("dd", { title: title || null }, value));
}
