/** The input pipeline: its stages, which of them holds up the program, and how long steps wait. */

import { sqlCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { counted, percent, time } from "../../core/format.js";
import { withExport } from "../../core/exporting.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { SECTIONS } from "../../core/sections.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {{stage: string, parent: string | null, is_bottleneck: boolean, wait_ps: number}} Stage */

/**
 * @typedef {object} Waits how long training waits for input, of `peakline steps --json`
 * @property {number} steps
 * @property {number} left_out of the first steps
 * @property {number} waiting
 * @property {number} within_ps
 * @property {number} between_ps
 * @property {number} whole_ps
 */

const QUERY = "select * from input_pipeline order by wait_ps desc";

/** @type {import("./index.js").MountPart} */
export function mountInput(facts, body, _params, signal) {
  const { context } = facts;
  void load();
  return { update() {} };

  async function load() {
    fill(body, loading("Reading the input pipeline"));
    try {
      const known = await facts.tables();
      const [answer, waits] = await Promise.all([
        known.includes("input_pipeline") ? facts.sql(QUERY) : { data: [], warnings: [], notes: [] },
        facts.inputWaits(),
      ]);
      if (signal.aborted) return;
      const stages = answer.data.length ? stagesTable(answer.data, context) : h("div", {}, h("h2", {}, "Stages"), empty(
        WORDING.input.none, WORDING.input.records));
      const result = h("div", { class: "stack" });
      fill(body, notices(answer), waitFacts(waits), h("section", { class: "panel stack" }, stages), result);
      const findings = await facts.findings();
      if (signal.aborted) return;
      fill(result, ...findings.filter((one) => SECTIONS[one.kind] === "input").map((one) =>
        findingPart(one, evidenceLinks(one, (view, changes) => context.link(view, changes))
          .filter((link) => !link.href.includes("part=input")))));
    } catch (error) {
      if (!signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

/** @param {Waits | null} of */
function waitFacts(of) {
  if (!of?.steps) return null;
  const { steps, left_out: left, waiting, within_ps: within, between_ps: between } = of;
  const share = (/** @type {number} */ ps) => percent(ps / Math.max(of.whole_ps, 1));
  const each = (/** @type {number} */ ps) => `${share(ps)}, ${time(ps / steps)} per step`;
  return h("dl", { class: "panel facts" }, ...[
    [WORDING.input.waits, share(within + between)],
    ["Within the steps", each(within)],
    ["Between the steps", each(between)],
    ["Steps that wait", `${waiting} of ${steps}`],
    ...(left ? [["Not counted", `the first ${counted(left, "step")}`]] : []),
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/**
 * @param {Stage[]} rows by how long they were waited for
 * @param {import("../../shell/context.js").Context} context
 */
function stagesTable(rows, context) {
  const table = new DataTable({
    label: "Stages of the input pipeline",
    columns: [
      { key: "stage", title: "Stage", width: "minmax(18rem, 4fr)", unsorted: true, cell: (row) =>
        h("span", { title: row.stage, style: { paddingLeft: `${row.depth * 1.2}rem` } },
          row.depth ? "↳ " : "", row.short, row.is_bottleneck
            && h("span", { class: "badge warning after" }, WORDING.input.bottleneck)) },
      { key: "category", title: "Kind", width: "8rem", unsorted: true },
      { key: "wait_ps", title: "Waited for", kind: "time", unsorted: true,
        help: "how long the stage above, or the program, had to wait for it" },
      { key: "self_ps", title: "Self time", kind: "time", unsorted: true },
      { key: "total_ps", title: "Total", kind: "time", unsorted: true,
        help: "with the stages below" },
      { key: "occurrences", title: "Calls", kind: "count", width: "6rem", unsorted: true },
      { key: "median_ps", title: "Median", kind: "time", unsorted: true },
      { key: "p95_ps", title: "95th perc.", kind: "time", unsorted: true },
      { key: "max_ps", title: "Longest", kind: "time", unsorted: true },
    ],
  });
  table.setRows(asTree(rows));
  return withExport(table, { name: `${context.session}_input_pipeline`, json: () => rows,
    command: () => sqlCommand(context, QUERY) }, h("h2", {}, "Stages"));
}

/**
 * Each stage after the one that asks it, with its depth.
 * @param {Stage[]} rows
 */
function asTree(rows) {
  const names = new Set(rows.map((row) => row.stage));
  /** @type {any[]} */
  const made = [];
  const seen = new Set();
  const add = (/** @type {Stage} */ row, /** @type {number} */ depth) => {
    if (seen.has(row.stage)) return;
    seen.add(row.stage);
    made.push({ ...row, depth, short: shortened(row) });
    for (const below of rows) if (below.parent === row.stage) add(below, depth + 1);
  };
  for (const row of rows) if (!row.parent || !names.has(row.parent)) add(row, 0);
  for (const row of rows) add(row, 0);
  return made;
}

/** @param {Stage} row */
function shortened({ stage, parent }) {
  return parent && stage.startsWith(`${parent}::`) ? stage.slice(parent.length + 2) : stage;
}
