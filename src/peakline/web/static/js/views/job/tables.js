/** Tables of a job: its collectives by kind and group, and its ranks. */

import { toolCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { count } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { WORDING } from "../../core/wording.js";
import { rate } from "./arrivals.js";

/** @typedef {import("../../shell/context.js").Context} Context */
/** @typedef {{kind: string | null, group: string | null}} Which collectives of a kind in a group */

/** So many kinds and groups are listed, those that take most. */
const MOST = 2000;

/**
 * A panel that loads the collectives by kind and group.
 * @param {Context} context
 * @param {(which: Which | null) => void} choose a row was chosen, or is no more
 */
export function collectivesPanel(context, choose) {
  const body = h("div", { class: "stack" });
  void load();
  return h("section", { class: "panel stack", "aria-labelledby": "collectives-of-job" },
    h("h2", { id: "collectives-of-job" }, "Collectives"), body);

  async function load() {
    fill(body, loading("Adding up the collectives"));
    try {
      const query = { by: "group", limit: MOST };
      const { data } = await context.tool("collectives", { host: "", ...query });
      if (context.signal.aborted) return;
      /** @type {any} */
      let chosen = null;
      const table = new DataTable({
        label: "Collectives by kind and group", height: "20rem", nothing: WORDING.job.none_recorded,
        columns: [
          { key: "kind", title: "Kind", width: "minmax(8rem, 1fr)" },
          { key: "group", title: "Ranks", width: "minmax(9rem, 2fr)" },
          { key: "members", title: "Members", kind: "count", width: "6.5rem" },
          { key: "count", title: "Count", kind: "count", width: "6.5rem" },
          { key: "size_bytes", title: "Bytes", kind: "bytes" },
          { key: "wait_ps", title: "Median wait", kind: "time", help: "of the first of its members" },
          { key: "transfer_ps", title: "Median transfer", kind: "time", width: "9rem",
            help: "after the last of its members came" },
          { key: "bus_bytes_per_second", title: "Bus bandwidth", kind: "number", width: "8.5rem",
            cell: (row) => rate(row.bus_bytes_per_second) },
        ],
        isChosen: (row) => row === chosen,
        onChoose: (row) => {
          chosen = row === chosen ? null : row;
          choose(chosen);
        },
      });
      table.setRows(data.rows);
      fill(body, withExport(table, { name: `${context.session}_collectives`, json: () => data,
        command: () => toolCommand(context, "collectives", query) },
      h("p", { class: "quiet" }, data.rows_total ? WORDING.job.choose_group : "")));
    } catch (error) {
      if (!context.signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

/**
 * All ranks with what their steps are spent on; each leads to its summary.
 * @param {Context} context
 * @param {import("./answer.js").Job} data
 */
export function ranksPanel(context, data) {
  const table = new DataTable({
    label: "Ranks of the job", height: "24rem",
    columns: [
      { key: "title", title: "Rank", width: "minmax(8rem, 1fr)", cell: (row) => h("a", {
        href: context.linkTo(context.session, "summary", { host: row.host }) }, row.title) },
      { key: "host", title: "Host", width: "minmax(8rem, 1fr)" },
      { key: "machine", title: "Machine", width: "minmax(7rem, 1fr)" },
      { key: "steps", title: "Steps", kind: "count", width: "5.5rem" },
      { key: "step_ps", title: "Mean step", kind: "time" },
      { key: "compute_ps", title: "Computing", kind: "time" },
      { key: "waiting_ps", title: "Waiting", kind: "time" },
      { key: "transfer_ps", title: "Transfers", kind: "time" },
      { key: "late_ps", title: "Late", kind: "time", help: "the median of all its collectives" },
      { key: "peak_bytes", title: "Peak", kind: "bytes" },
    ],
  });
  // What nobody knows is not 0.
  const isPaired = data.time !== null && data.time.waiting_share !== null;
  table.setRows(data.ranks.map((one) => ({ ...one, steps: data.time ? one.steps : null,
    waiting_ps: isPaired ? one.waiting_ps : null, transfer_ps: isPaired ? one.transfer_ps : null })));
  return h("section", { class: "panel", "aria-labelledby": "ranks-of-job" },
    withExport(table, { name: `${context.session}_ranks`, json: () => data.ranks,
      command: () => toolCommand(context, "job") },
    h("h2", { id: "ranks-of-job" }, "Ranks"), h("span", { class: "quiet" }, count(data.ranks.length))));
}
