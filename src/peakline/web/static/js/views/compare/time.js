/** Time of two sessions: steps, what their time goes to, and the ops that take more or less. */

import { h } from "../../core/dom.js";
import { count, time, worded } from "../../core/format.js";
import { partOf, swatch } from "../../core/parts.js";
import { withExport } from "../../core/exporting.js";
import { DataTable } from "../../core/table.js";
import { bySize, changeColumn, changeFact, time3 } from "./changes.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Links} Links */

/**
 * @param {any} data
 * @param {Links} links
 * @param {HTMLElement} chart of every step
 * @returns {HTMLElement}
 */
export function timePart({ time: both }, links, chart) {
  return h("section", { class: "panel stack", "aria-label": "Time" }, h("h2", {}, "Time"),
    ...(both ? changesOf(both, links, chart)
      : [h("p", { class: "quiet" }, WORDING.compare.no_time)]));
}

/**
 * @param {any} both
 * @param {Links} links
 * @param {HTMLElement} chart
 */
function changesOf(both, links, chart) {
  const { before, after, parts, ops, notes } = both;
  const result = [];
  if (before.times || after.times) {
    const of = (/** @type {string} */ name, /** @type {string} */ title) =>
      changeFact(title, before.times?.[name], after.times?.[name], time3, { neutral: both.is_chance });
    result.push(h("dl", { class: "facts" }, of("median_ps", "Median step"), of("mean_ps", "Mean step"),
      of("min_ps", "Fastest step"), of("p95_ps", "95th percentile"), of("max_ps", "Slowest step"),
      changeFact("Between steps (median)", before.between_steps_ps, after.between_steps_ps, time3),
      changeFact("Steps", before.steps || null, after.steps || null, count, { neutral: true })));
  }
  result.push(...notes.map((/** @type {string} */ note) =>
    h("p", { class: "quiet" }, `Note: ${note}.`)), chart);
  if (parts.length) {
    const rows = bySize(parts, "delta_ps").map((row) => ({ ...row, text: partOf(row.part).text }));
    result.push(table(h("h3", {}, WORDING.compare.parts), WORDING.compare.parts_label, [
      { key: "text", title: "Part", width: "minmax(14rem, 1fr)",
        cell: (row) => h("span", { class: "row-of part-name" }, swatch(partOf(row.part)), row.text) },
      changeColumn("delta_ps", "Change", "time", time, rows),
      { key: "before_ps", title: "Before", kind: "time" },
      { key: "after_ps", title: "After", kind: "time" },
    ], rows, links));
  }
  if (ops.length) result.push(...opsPart(both, links));
  else if (before.times && after.times) {
    result.push(h("p", { class: "quiet" }, WORDING.compare.same_ops));
  }
  return result;
}

/**
 * @param {any} both
 * @param {Links} links
 */
function opsPart({ ops, ops_per, other_ops }, links) {
  const per = ops_per === "step" ? WORDING.compare.per_step : WORDING.compare.per_profile;
  const rows = bySize(ops, "delta_ps");
  const head = h("h3", {}, worded(WORDING.compare.ops, { per }));
  const made = table(head, WORDING.compare.ops_label, [
    { key: "op", title: "Op", width: "minmax(16rem, 2fr)", cell: (row) => {
      const isGone = row.change === "gone";
      return h("a", { title: row.op, href: (isGone ? links.before : links.after)("steps",
        { part: "ops", q: row.op }) }, row.op);
    } },
    changeColumn("delta_ps", "Change", "time", time, rows),
    { key: "before_ps", title: "Before", kind: "time" },
    { key: "after_ps", title: "After", kind: "time" },
    { key: "side", title: "Where", width: "5.5rem" },
    { key: "op_type", title: "Type", width: "10rem" },
    { key: "text", title: "What happened", width: "minmax(12rem, 1fr)" },
  ], rows, links);
  const others = ["device", "host"].flatMap((side) => {
    const { before_ps, after_ps } = other_ops[side];
    return before_ps || after_ps
      ? [worded(WORDING.compare.other_of, { side, before: time(before_ps), after: time(after_ps) })] : [];
  });
  return [made,
    ...(others.length ? [h("p", { class: "quiet" }, worded(WORDING.compare.others, { per, others: others.join(", ") }))] : [])];
}

/**
 * @param {Node} head
 * @param {string} label
 * @param {import("../../core/table.js").Column[]} columns
 * @param {any[]} rows by absolute change
 * @param {Links} links
 */
function table(head, label, columns, rows, links) {
  const made = new DataTable({ label, columns, height: "24rem" });
  made.setRows(rows);
  return withExport(made, { name: `comparison ${label}`, command: links.command }, head);
}
