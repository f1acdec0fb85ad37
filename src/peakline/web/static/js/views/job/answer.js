/** What is said of a job first: who keeps the others waiting, since when, why, and what it costs. */

import { h } from "../../core/dom.js";
import { findingPart } from "../../core/finding.js";
import { bytes, count, counted, percent, time, worded } from "../../core/format.js";
import { partsBar } from "../../core/parts.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} Job the answer of `job`, as far as the page shows it
 * @property {{ranks: number, world_size: number | null, missing: number[], short: string[], damaged: string[], left_out: {host: string, reason: string}[], notes: string[], clocks: {aligned_by: string, uncertainty_ps: number, machines: {ahead_ps: number}[]}}} job
 * @property {string} headline
 * @property {any} memory
 * @property {Times | null} time
 * @property {Rank[]} ranks
 * @property {(import("../../core/finding.js").Finding & {about: string, ranks?: string[]})[]} first
 * @property {number} further_findings
 * @property {(import("../../core/finding.js").Finding & {about: string, ranks?: string[]})[]} findings
 */
/**
 * @typedef {object} Times
 * @property {number} steps
 * @property {{mean: number, min: number, median: number, max: number}} step_ps
 * @property {number | null} waiting_share
 * @property {number | null} transfer_share
 * @property {Root | null} root
 * @property {Root[]} roots
 * @property {number | null} step_without_ps
 */
/**
 * @typedef {object} Root
 * @property {number | null} rank
 * @property {(number | null)[]} [ranks]
 * @property {string[]} machines whose links are slow
 * @property {string | null} title
 * @property {string | null} host
 * @property {string} cause
 * @property {string[]} evidence the first says who, those after it why, and what to do
 * @property {string[] | null} steps
 * @property {number | null} step_without_ps
 * @property {number | null} share
 */
/**
 * @typedef {object} Rank
 * @property {number | null} rank
 * @property {string} title
 * @property {string} host
 * @property {string} machine
 * @property {number} steps
 * @property {number | null} peak_bytes
 * @property {number | null} step_ps
 * @property {number | null} compute_ps
 * @property {number | null} waiting_ps
 * @property {number | null} transfer_ps
 * @property {number | null} late_ps
 */
/** @typedef {import("../../shell/context.js").Context} Context */

const MOST_LINES = 6;
/** What a step's time goes to over all ranks. */
const PARTS = {
  compute: { name: "compute", text: "computing", color: "series-3", pattern: /** @type {const} */ ("") },
  waiting: { name: "waiting", text: WORDING.job.waiting, color: "series-7", pattern: /** @type {const} */ ("/") },
  transfer: { name: "transfer", text: "transfers", color: "series-4", pattern: /** @type {const} */ ("") },
  other: { name: "other", text: "all else", color: "series-8", pattern: /** @type {const} */ ("") },
};

/**
 * @param {Job} data
 * @param {HTMLElement} menu to export it
 */
export function answerPanel(data, menu) {
  const { job, time: times, memory } = data, machines = new Set(data.ranks.map((one) => one.machine).filter(Boolean));
  const root = times?.root, peaks = memory?.peak_bytes;
  const facts = [
    fact("Ranks", `${count(job.ranks)}${job.world_size && job.world_size !== job.ranks ? ` of ${count(job.world_size)}` : ""}`,
      machines.size ? `on ${counted(machines.size, "machine")}` : ""),
    times && fact("Steps", count(times.steps)),
    times && fact("Mean step", time(times.step_ps.mean),
      `${time(times.step_ps.min)} to ${time(times.step_ps.max)} by rank`),
    root && root.step_without_ps !== null && fact("Without the cause", time(root.step_without_ps),
      root.share === null ? "" : `−${percent(root.share)}`),
    peaks && fact("Largest peak", bytes(peaks.max), `${peaks.max_rank}; least ${bytes(peaks.min)}`),
    memory?.headroom_bytes && fact("Least headroom", bytes(memory.headroom_bytes.min),
      memory.headroom_bytes.min_rank),
  ];
  return h("section", { class: "panel stack job-answer", "aria-label": "In short" },
    h("div", { class: "with-menu" }, h("p", { class: `lead${root ? " bad" : ""}` }, capital(data.headline)), menu),
    root && h("p", { class: "why" }, capital(root.evidence.at(root.cause === "network" ? -1 : 1) ?? "")),
    h("dl", { class: "facts" }, ...facts), troubles(data));
}

/**
 * Whose profile is missing, short, damaged or of another job, in a line each.
 * @param {Job} data
 */
function troubles({ job }) {
  const lines = [
    ...(job.missing.length ? [`Missing: ${ranges(job.missing)}`] : []),
    ...few(job.short), ...few(job.damaged),
    ...few(job.left_out.map(({ host, reason }) => `${host} ${reason}`)), ...few(job.notes),
  ];
  return lines.length > 0 && h("ul", { class: "troubles" }, ...lines.map((line) => h("li", {}, line)));
}

/** @param {string[]} lines */
function few(lines) {
  return lines.length <= MOST_LINES ? lines
    : [...lines.slice(0, MOST_LINES - 1), worded(WORDING.job.more, { more: count(lines.length - MOST_LINES + 1) })];
}

/**
 * What the steps of all ranks are spent on.
 * @param {Job} data
 */
export function partsPanel({ time: times, ranks, job }) {
  const known = ranks.filter((one) => one.step_ps !== null);
  if (!times || !known.length) return null;
  const mean = (/** @type {"step_ps" | "compute_ps" | "waiting_ps" | "transfer_ps"} */ name) =>
    known.reduce((sum, one) => sum + (one[name] ?? 0), 0) / known.length;
  const step = mean("step_ps"), paired = times.waiting_share !== null;
  const compute = mean("compute_ps"), waiting = paired ? mean("waiting_ps") : 0;
  const transfer = paired ? mean("transfer_ps") : 0;
  const { clocks } = job;
  return h("section", { class: "panel" }, h("h2", {}, WORDING.summary.time),
    partsBar([{ part: "compute", ps: compute }, { part: "waiting", ps: waiting },
      { part: "transfer", ps: transfer }, { part: "other", ps: Math.max(step - compute - waiting - transfer, 0) }],
    WORDING.job.parts, (name) => PARTS[/** @type {keyof typeof PARTS} */ (name)]),
    !paired && h("p", { class: "quiet" }, WORDING.job.unpaired),
    clocks.aligned_by === "collectives" && h("p", { class: "quiet" },
      worded(WORDING.job.clocks, { clocks: counted(clocks.machines.length, "clock"),
        uncertainty: time(clocks.uncertainty_ps) })));
}

/**
 * What to fix first, each with the ranks that have it, and all others when they are wanted.
 * @param {Job} data
 * @param {(finding: Job["first"][number]) => import("../../core/finding.js").EvidenceLink[]} links
 */
export function fixesPanel({ first, findings, time: times, memory }, links) {
  if (!findings.length) {
    return h("section", { class: "panel fixes" }, h("h2", {}, times || memory ? "No findings" : "Nothing to judge"),
      h("p", {}, times || memory ? WORDING.job.no_findings : WORDING.job.nothing));
  }
  const item = (/** @type {Job["first"][number]} */ one) => h("li", {},
    h("p", { class: "quiet gain" }, [one.about === "memory" ? "Memory" : "Time",
      one.gain_share ? `up to ${percent(one.gain_share)}` : "", one.ranks ? whoHas(one.ranks) : ""]
      .filter(Boolean).join(" · ")), findingPart(one, links(one)));
  const more = findings.slice(first.length);
  const list = h("ol", { class: "plain-list stack" });
  const further = h("details", {}, h("summary", {}, counted(more.length, "further finding")), list);
  further.addEventListener("toggle", () => {
    if (further.open && !list.childElementCount) list.append(...more.map(item));
  });
  return h("section", { class: "panel fixes stack" }, h("h2", {}, "Fix first"),
    h("ol", { class: "plain-list stack" }, ...first.map(item)), more.length > 0 && further);
}

/** @param {string[]} titles */
function whoHas(titles) {
  return titles.length <= 4 ? titles.join(", ") : `${titles.slice(0, 2).join(", ")} and ${
    count(titles.length - 2)} more`;
}

/**
 * Numbers in order, what follows each other as a range: `0-3, 7`.
 * @param {number[]} numbers
 */
export function ranges(numbers) {
  /** @type {[number, number][]} */
  const runs = [];
  for (const one of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last[1] === one - 1) last[1] = one;
    else runs.push([one, one]);
  }
  return `rank${numbers.length === 1 ? "" : "s"} ${runs.map(([from, to]) =>
    from === to ? String(from) : `${from}-${to}`).join(", ")}`;
}

/** @param {string} text */
function capital(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
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
