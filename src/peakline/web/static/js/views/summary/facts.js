/** The summary's panels of numbers: the profile, a step, the devices, memory, ops. */

import { h } from "../../core/dom.js";
import { bytes, counted, percent, sentence, time, worded } from "../../core/format.js";
import { partsBar } from "../../core/parts.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Summary} Summary */
/** @typedef {import("../../shell/context.js").Context} Context */

const SHOWN = WORDING.limits.summary;
/** @type {Record<string, string>} */
const howFound = WORDING.how_found;

/**
 * @param {Summary} summary
 * @param {HTMLElement} menu to export it
 */
export function factsPanel({ profile, memory, time: timing }, menu) {
  const times = timing?.times;
  const peak = (memory?.allocators ?? []).reduce((most, one) => Math.max(most, one.peak_bytes), 0);
  return h("div", { class: "panel with-menu" }, h("dl", { class: "facts" },
    fact("Format", profile.format),
    profile.host && fact("Host", profile.host),
    (profile.duration_ps > 0 || memory) && fact("Recorded",
      profile.duration_ps ? time(profile.duration_ps) : "one moment"),
    times && fact("Steps", counted(timing.steps, "step"),
      timing.found_by === "function" ? "inferred" : ""),
    ...(times && timing.times_by_name.length
      ? timing.times_by_name.slice(0, SHOWN).map((one) => fact(`Median ${one.name}`,
        time(one.median_ps), `${time(one.min_ps)} to ${time(one.max_ps)}`))
      : [times && fact("Median step", time(times.median_ps),
        times.count > 1 ? `${time(times.min_ps)} to ${time(times.max_ps)}` : "")]),
    timing && timing.devices.length > 0 && fact("Devices busy", span(timing.devices.map(busyShare)),
      counted(timing.devices.length, "device")),
    peak > 0 && fact("Largest peak", bytes(peak),
      memory && memory.allocators.length > 1
        ? `of ${counted(memory.allocators.length, "allocator")}` : "")), menu);
}

/**
 * @param {Context} context
 * @param {Summary} summary
 */
export function stepPanel(context, { time: timing }) {
  if (!timing) {
    return missing("Time", WORDING.no_time, WORDING.records_time);
  }
  if (!timing.times) {
    return missing(WORDING.summary.time, WORDING.not_judged,
      timing.to_record.map(sentence).join(" "));
  }
  const { times } = timing;
  const [most] = timing.times_by_name;
  const steps = most ? `${counted(most.count, "step")} of ${most.name}`
    : counted(timing.steps, "step");
  return h("section", { class: "panel" },
    h("h2", {}, `${WORDING.summary.time}${most ? ` (${most.name})` : ""}`),
    partsBar(timing.parts.map(({ part, per_step_ps: ps }) => ({ part, ps })), "A mean step"),
    h("p", { class: "quiet" }, worded(times.count < 2 ? WORDING.summary.one_step
      : WORDING.summary.steps, { mean: time(times.mean_ps), p95: time(times.p95_ps), steps: steps
        + (!most && times.count > timing.steps ? ` on ${counted(timing.devices.length, "device")}` : "") }),
    ` ${howFound[timing.found_by ?? ""] ?? ""} `,
    h("a", { href: context.link("steps") }, "All steps")),
    ...timing.to_record.map((line) => h("p", { class: "quiet" }, sentence(line))));
}

/** @param {Summary} summary */
export function devicesPanel({ time: timing }) {
  if (!timing?.devices.length) return null;
  return h("section", { class: "panel" }, h("h2", {}, "Devices"),
    h("ul", { class: "gauges" }, ...timing.devices.map((row) => gauge(row["device"],
      busyShare(row), worded(WORDING.summary.busy,
        { share: percent(busyShare(row)), span: time(row["end_ps"] - row["start_ps"]) }),
      worded(WORDING.summary.idle, { longest: time(row["longest_idle_ps"]) })))));
}

/**
 * @param {Context} context
 * @param {Summary} summary
 */
export function memoryPanel(context, { memory, profile, programs, time: timing }) {
  if (!memory && programs?.length) return needsPanel(context, programs);
  if (!memory) {
    return missing("Memory", WORDING.no_memory_in_profile,
      timing ? WORDING.records_memory_briefly : "");
  }
  const peaks = [...memory.allocators].sort((one, other) => other.peak_bytes - one.peak_bytes);
  return h("section", { class: "panel" }, h("h2", {}, "Memory peaks"),
    h("ul", { class: "gauges" }, ...peaks.slice(0, SHOWN).map((one) => {
      const name = one.allocator || "(unnamed allocator)";
      const isKnown = one.peak_bytes > 0 || !one.untracked_allocations;
      /** @type {Record<string, string | number>} */
      const params = { allocator: one.allocator };
      if (profile.duration_ps) params["at"] = one.peak_time_ps;
      const link = h("a", { href: context.link("memory", params) }, name);
      if (!isKnown) {
        return gauge(link, null, "not known", WORDING.untracked);
      }
      const when = profile.duration_ps ? ` at ${time(one.peak_time_ps)}` : "";
      const share = one.capacity_bytes ? one.peak_bytes / one.capacity_bytes : null;
      return gauge(link, share, `${bytes(one.peak_bytes)}${when}`,
        share === null ? "capacity unknown"
          : `${share < 0.0005 ? "<0.1%" : percent(share)} of ${bytes(one.capacity_bytes)}`);
    })),
    peaks.length > SHOWN && h("p", {}, h("a", { href: context.link("memory") },
      `${counted(peaks.length - SHOWN, "more allocator")} in Memory`)));
}

/**
 * What compiled programs say, where nothing is recorded.
 * @param {Context} context
 * @param {import("./index.js").Need[]} programs
 */
function needsPanel(context, programs) {
  /** @type {Map<string, import("./index.js").Need[]>} */
  const result = new Map();
  for (const one of programs) result.set(one.program, [...result.get(one.program) ?? [], one]);
  const most = [...result].sort(([, [one]], [, [other]]) =>
    (other?.peak_bytes ?? 0) - (one?.peak_bytes ?? 0)).slice(0, SHOWN);
  return h("section", { class: "panel" }, h("h2", {}, WORDING.summary.programs),
    h("ul", { class: "gauges" }, ...most.map(([program, [first, ...others]]) => gauge(
      h("a", { href: context.link("memory", { programs: "true", program }) }, program), null,
      `${first?.runs ? "at least " : ""}${bytes(first?.peak_bytes)}`,
      !first?.device ? "" : others.length ? `on ${counted(others.length + 1, "device")}`
        : `on ${first.device}, ${counted(first.runs, "run")}`))),
    h("p", { class: "quiet" }, WORDING.needs_of_programs));
}

/**
 * @param {Context} context
 * @param {Summary} summary
 */
export function opsPanel(context, { time: timing }) {
  if (!timing?.top_ops.length) return null;
  const { side } = timing.top_ops[0] ?? { side: "host" };
  return h("section", { class: "panel" }, h("h2", {}, WORDING.summary.ops),
    h("ul", { class: "gauges" }, ...timing.top_ops.map((op) => gauge(
      h("a", { href: context.link("steps", { part: "ops", op: op.op, side: op.side }) }, op.op),
      op.share, `${time(op.self_ps)}, ${percent(op.share)}`,
      [op.op.endsWith(op.op_type ?? "") ? "" : op.op_type,
        op.is_input && WORDING.summary.input].filter(Boolean).join("; ")))),
    h("p", { class: "quiet" }, WORDING.summary.shares[side === "host" ? "host" : "device"], " ",
    h("a", { href: context.link("steps", { part: "ops" }) }, "All ops")));
}

/**
 * A named share as a bar with its words.
 * @param {Node | string} name
 * @param {number | null} share null: no bar
 * @param {string} value
 * @param {string} note
 */
function gauge(name, share, value, note) {
  return h("li", {},
    h("div", { class: "row-of" }, h("span", { class: "grow name" }, name),
      h("span", { class: "number" }, value)),
    share !== null && h("div", { class: "gauge", "aria-hidden": "true" },
      h("div", { style: { width: `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%` } })),
    note && h("div", { class: "quiet note" }, note));
}

/** @param {Record<string, any>} row of `device_time` */
function busyShare(row) {
  return row["busy_ps"] / Math.max(row["end_ps"] - row["start_ps"], 1);
}

/** @param {number[]} shares */
function span(shares) {
  const least = percent(Math.min(...shares)), most = percent(Math.max(...shares));
  return least === most ? most : `${least} to ${most}`;
}

/**
 * @param {string} title
 * @param {string} what
 * @param {string} todo
 */
function missing(title, what, todo) {
  return h("section", { class: "panel" }, h("h2", {}, title), h("p", {}, what),
    todo && h("p", { class: "quiet" }, todo));
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} [note]
 */
function fact(name, value, note = "") {
  return h("div", {}, h("dt", {}, name),
    h("dd", {}, value, note && h("div", { class: "quiet note" }, note)));
}
