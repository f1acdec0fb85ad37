/** One op: its numbers, how its runs are spread, its kernels, where to see it. */

import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { count, percent, time, bytes } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { histogram } from "./histogram.js";

/** @typedef {import("./ops_part.js").Op} Op */

export class OpDetail {
  #ends = new AbortController();

  /** @param {import("./facts.js").Facts} facts */
  constructor(facts) {
    this.facts = facts;
    this.element = h("aside", { class: "panel stack detail", "aria-label": "The chosen op",
      hidden: true });
  }

  /** @param {Op | null} op null: none is chosen */
  show(op) {
    this.#ends.abort();
    this.#ends = new AbortController();
    this.element.hidden = op === null;
    if (!op) return;
    const { context } = this.facts;
    const runs = h("div", {}), kernels = h("div", {}), inSql = h("span", {});
    fill(this.element,
      h("h2", { class: "name" }, op.op),
      h("dl", { class: "facts small" }, ...factsOf(op).map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      h("p", { class: "row-of" },
        h("a", { href: context.link("timeline", { q: op.op, find: op.op }) }, "Show in the timeline"),
        inSql),
      runs, kernels);
    void this.#addRuns(op, runs, inSql, this.#ends.signal);
    if (op.side === "device") void this.#addKernels(op, kernels, this.#ends.signal);
  }

  destroy() {
    this.#ends.abort();
  }

  /**
   * @param {Op} op
   * @param {HTMLElement} place
   * @param {HTMLElement} inSql where a link to the runs goes
   * @param {AbortSignal} signal
   */
  async #addRuns(op, place, inSql, signal) {
    fill(place, h("h3", {}, "How long its runs took"), loading("Reading its runs"));
    try {
      const tables = await this.facts.tables();
      const source = tables.includes("events") ? "events" : tables.includes("op_runs") ? "op_runs" : "";
      const { data } = source ? await this.facts.sql(histogramQuery(op, source)) : { data: [] };
      if (signal.aborted) return;
      fill(place, h("h3", {}, "How long its runs took"), histogram(op, data));
      if (data.length) {
        fill(inSql, h("a", { href: this.facts.context.link("sql", { query: runsQuery(op, source) }) },
          "Its runs in SQL"));
      }
    } catch (error) {
      if (!signal.aborted) fill(place, failed(error));
    }
  }

  /**
   * @param {Op} op
   * @param {HTMLElement} place
   * @param {AbortSignal} signal
   */
  async #addKernels(op, place, signal) {
    const { data } = await this.facts.sql("select kernel, occurrences, total_ps, uses_tensor_cores "
      + `from kernels where op = ${quoted(op.op)} order by total_ps desc`).catch(() => ({ data: [] }));
    if (signal.aborted || !data.length) return;
    const table = new DataTable({ label: "Kernels of the op", height: "16rem", columns: [
      { key: "kernel", title: "Kernel" },
      { key: "occurrences", title: "Runs", kind: "count", width: "5rem" },
      { key: "total_ps", title: "Total", kind: "time", width: "6.5rem" },
    ] });
    table.setRows(data);
    fill(place, withExport(table, { name: `kernels of ${op.op}` }, h("h3", {}, "Its kernels")));
  }
}

/**
 * @param {Op} op
 * @returns {[string, string][]}
 */
function factsOf(op) {
  /** @type {[string, string][]} */
  const rows = [
    ["Type", op.op_type || "–"], ["Side", op.side], ["Runs", count(op.occurrences)],
    ["Self time", time(op.self_ps)], [`Share of ${op.side}`, percent(op.share)], ["Total", time(op.total_ps)],
    ["Mean", time(op.total_ps / op.occurrences)],
  ];
  if (op.flops) rows.push(["Operations", `${op.flops.toExponential(3)} FLOP`]);
  if (op.bytes_accessed) rows.push(["Bytes accessed", bytes(op.bytes_accessed)]);
  if (op.is_eager) rows.push(["Run", "one by one"]);
  return rows;
}

/**
 * The names that an op's events may have (docs/ops.md, "What counts as an op").
 * @param {Op} op
 */
function names({ op, op_type: type }) {
  return [op, `${op}:${type ?? ""}`, `EagerLocalExecute: ${op}`].map(quoted).join(", ");
}

/**
 * Which rows of `events` or `op_runs` are the op's.
 * @param {Op} op
 * @param {string} source
 */
function condition(op, source) {
  if (source !== "events") return `name in (${names(op)})`;
  // What ran on a device and the host's call for it may have one name.
  return `name in (${names(op)})\n  and line_id in (select line_id from lines join planes `
    + `using (plane_id) where kind ${op.side === "device" ? "=" : "<>"} 'device')`;
}

/**
 * @param {Op} op
 * @param {string} source
 */
function runsQuery(op, source) {
  return `select start_ps, duration_ps${source === "events" ? ", line_id" : ""}\nfrom ${source}\n`
    + `where ${condition(op, source)}\norder by duration_ps desc\nlimit 1000`;
}

/**
 * Runs by the quarters of a doubling that they took.
 * @param {Op} op
 * @param {string} source a table with names and durations
 */
function histogramQuery(op, source) {
  return "select cast(floor(4 * log2(greatest(duration_ps, 1))) as integer) as bin, "
    + `count(*) as runs from ${source} where ${condition(op, source)} group by all order by bin`;
}

/** @param {string} text */
function quoted(text) {
  return `'${text.replace(/'/g, "''")}'`;
}
