/** How much steps differ: a row per name of steps, of each device or host of the session. */

import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { sentence } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";

/** @typedef {import("./facts.js").Variation} Variation */

/** What is exported of a row. */
const VARIES = ["host", "device", "name", "steps", "min_ps", "median_ps", "mean_ps", "p95_ps", "max_ps",
  "coefficient", "slow"];

/**
 * @param {string} label
 * @param {Variation[]} rows
 * @param {"name" | "device" | "host"} key what a row is about
 * @param {(row: any) => string} link to it; of a name there is none
 */
export function variationTable(label, rows, key, link = () => "") {
  const isHost = key === "host";
  const names = new Set(rows.map((row) => row.name));
  const table = new DataTable({
    label,
    columns: [
      ...(key === "name" ? [] : [/** @type {const} */ ({
        key, title: isHost ? "Host" : "Device", cell: (/** @type {any} */ row) =>
          h("a", { href: link(row) }, row[key] || "(host)") })]),
      ...(key === "name" || names.size > 1 ? [/** @type {const} */ ({
        key: "name", title: "Name",
        cell: (/** @type {any} */ row) => row.name || "(no name)" })] : []),
      ...(isHost && rows.some((row) => row.device !== null)
        ? [/** @type {const} */ ({ key: "device", title: "Device" })] : []),
      { key: "steps", title: "Steps", kind: "count", width: "5.5rem" },
      { key: "median_ps", title: "Median", kind: "time" },
      { key: "p95_ps", title: "95th perc.", kind: "time", help: "of 20 steps 19 took no longer" },
      { key: "max_ps", title: "Longest", kind: "time" },
      { key: "coefficient", title: "Varies by", kind: "percent", width: "6.5rem",
        help: "standard deviation by the mean" },
      { key: "slow", title: "Slow", kind: "count", width: "5rem", unsorted: true,
        help: "steps of twice the median or more, without the first ones, which warm up" },
    ],
  });
  table.setRows(rows);
  return withExport(table, { name: label, rows: () => ({ columns: VARIES,
    rows: rows.map((/** @type {any} */ row) => VARIES.map((name) => row[name] ?? null)) }) });
}

/**
 * The hosts side by side, and who keeps the others waiting.
 * @param {import("./facts.js").Facts} facts
 * @param {AbortSignal} signal
 */
export function hostsPart(facts, signal) {
  const body = h("div", { class: "stack" });
  void load();
  return h("section", { class: "panel" }, h("h2", {}, "Hosts"), body);

  async function load() {
    fill(body, loading("Reading all hosts"));
    try {
      const { data, notes } = await facts.breakdownOfHosts();
      if (signal.aborted) return;
      const { context } = facts;
      fill(body,
        h("p", {}, sentence(data.straggler_text)),
        notes.length > 0 && h("p", { class: "quiet" }, notes.join(" ")),
        variationTable("Hosts", data.variation.map((row) => ({ ...row, warm_up: 0,
          slow: row.slow.filter((one) => !one.is_first).length })), "host", (row) =>
          context.linkTo(context.session, "steps",
            { host: row.host, ...(row.device ? { device: row.device } : {}) })));
    } catch (error) {
      if (!signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}
