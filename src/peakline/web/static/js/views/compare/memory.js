/** Memory of two sessions, allocator by allocator: the peaks, and which ops make the difference. */

import { h } from "../../core/dom.js";
import { bytes, count, percent } from "../../core/format.js";
import { withExport } from "../../core/exporting.js";
import { DataTable } from "../../core/table.js";
import { allocatorName, bySize, changeColumn, changeFact } from "./changes.js";
import { Stepwise } from "./stepwise.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/table.js").Column} Column */
/** @typedef {import("./index.js").Links} Links */

const OPEN = 4;

export class MemoryPart {
  /** @type {Stepwise[]} */
  #charts = [];

  /**
   * @param {any} data
   * @param {Links} links
   * @param {import("./index.js").Steps} steps
   */
  constructor(data, links, steps) {
    const { allocators } = data;
    this.element = h("section", { class: "panel stack", "aria-label": "Memory" },
      h("h2", {}, "Memory"),
      !allocators.length && h("p", { class: "quiet" }, WORDING.compare.no_memory),
      ...allocators.map((/** @type {any} */ one, /** @type {number} */ place) =>
        this.#allocator(one, place < OPEN, data, links, steps)));
  }

  destroy() {
    for (const one of this.#charts) one.destroy();
  }

  /**
   * @param {any} one of `allocators`
   * @param {boolean} isOpen
   * @param {any} data
   * @param {Links} links
   * @param {import("./index.js").Steps} steps
   */
  #allocator(one, isOpen, data, links, steps) {
    const { before, after } = one;
    const only = !before ? " (only after)" : !after ? " (only before)" : "";
    const part = h("details", { class: "allocator" },
      h("summary", {}, h("h3", {}, allocatorName(one.allocator), only)));
    const show = () => {
      if (!part.open || part.childElementCount > 1) return;
      const chart = new Stepwise(steps.coming, { kind: "bytes", title: allocatorName(one.allocator),
        names: [before?.allocator ?? null, after?.allocator ?? null], measure: steps.measure,
        onMeasure: steps.onMeasure });
      this.#charts.push(chart);
      part.append(h("div", { class: "stack" }, facts(one, !data.time), ...one.notes.map(
        (/** @type {string} */ note) => h("p", { class: "quiet" }, `Note: ${note}.`)),
      chart.element, ...tables(one, links)));
    };
    part.addEventListener("toggle", show);
    part.open = isOpen;
    return part;
  }
}

/**
 * @param {any} one of `allocators`
 * @param {boolean} withSteps where nothing else tells them
 */
function facts({ before, after }, withSteps) {
  const known = (/** @type {number | null | undefined} */ value) =>
    typeof value === "number" ? bytes(value) : "not known";
  return h("dl", { class: "facts" },
    changeFact("Peak", before?.peak_bytes, after?.peak_bytes, bytes),
    changeFact("Allocated a step", before?.allocated_per_step_bytes, after?.allocated_per_step_bytes, known),
    changeFact("Growth a step", before?.growth_per_step_bytes, after?.growth_per_step_bytes, known),
    changeFact(WORDING.compare.fragmentation, before?.fragmentation_at_peak,
      after?.fragmentation_at_peak, percent, { share: true }),
    withSteps && changeFact("Steps", before?.steps, after?.steps, count, { neutral: true }));
}

/**
 * @param {any} one
 * @param {Links} links
 */
function tables(one, links) {
  const parts = [];
  if (one.categories.length) {
    const rows = one.categories.map((/** @type {any} */ row) => ({ ...row, category: row.category || "not known" }));
    parts.push(table(h("h4", {}, "By category"), "By category", [
      { key: "category", title: "Category", width: "minmax(8rem, 1fr)" },
      changeColumn("delta_bytes", "Change", "bytes", bytes, rows),
      { key: "before_bytes", title: "Before", kind: "bytes" },
      { key: "after_bytes", title: "After", kind: "bytes" },
    ], rows, links));
  }
  if (one.groups.length) {
    const rows = bySize(one.groups, "delta_bytes");
    parts.push(table(h("h4", {}, WORDING.compare.at_the_peak), WORDING.compare.at_the_peak, [
      opColumn(one.allocator, links),
      changeColumn("delta_bytes", "Change", "bytes", bytes, rows),
      { key: "before_bytes", title: "Before", kind: "bytes" },
      { key: "after_bytes", title: "After", kind: "bytes" },
      { key: "text", title: "What happened", width: "minmax(18rem, 1fr)" },
      ...[...KINDS, ...PURPOSE].filter(known(rows)),
    ], rows, links));
  }
  const rates = /** @type {const} */ ([["growth", WORDING.compare.growth], ["churn", WORDING.compare.churn]]);
  for (const [key, title] of rates) {
    if (!one[key].length) continue;
    const rows = bySize(one[key], "delta_bytes_per_step");
    parts.push(table(h("h4", {}, title), title, [
      opColumn(one.allocator, links),
      changeColumn("delta_bytes_per_step", "Change a step", "bytes", bytes, rows),
      { key: "before_bytes_per_step", title: "Before", kind: "bytes" },
      { key: "after_bytes_per_step", title: "After", kind: "bytes" },
      ...KINDS.filter(known(rows)),
    ], rows, links));
  }
  return parts;
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

/** @type {readonly Column[]} what kind of buffers a row is about, besides its op */
const KINDS = [
  { key: "region_type", title: "Region", width: "8.5rem" },
  { key: "data_type", title: "Type", width: "6rem" },
  { key: "shape", title: "Shape", width: "9rem" },
];

/**
 * Whether any row has something in a column.
 * @param {any[]} rows
 * @returns {(column: Column) => boolean}
 */
function known(rows) {
  return ({ key }) => rows.some((row) => row[key]);
}

/** @type {readonly Column[]} what they are for, where the profile says it */
const PURPOSE = [
  { key: "category", title: "Category", width: "7rem" },
  { key: "module", title: "Module", width: "9rem" },
];

/**
 * A row's op, which leads to its buffers.
 * @param {string} allocator
 * @param {Links} links
 * @returns {Column}
 */
function opColumn(allocator, links) {
  return { key: "op", title: "Op", width: "minmax(14rem, 2fr)", cell: (row) => {
    const isGone = (row.after_bytes ?? row.after_bytes_per_step) === 0;
    // "(before profile)" and its like are no ops.
    if (!row.op || row.op.startsWith("(")) return row.op || "(no op)";
    return h("a", { title: row.op, href: (isGone ? links.before : links.after)("memory",
      { allocator, q: (isGone && row.was?.op) || row.op }) }, row.op);
  } };
}
