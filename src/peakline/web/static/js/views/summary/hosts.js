/** The hosts of a session side by side, and who keeps the others waiting. */

import { commandOf } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { counted, sentence } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Summary} Summary */

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {number} hosts how many there are
 */
export function hostsPanel(context, hosts) {
  const body = h("div", { class: "stack" });
  void load();
  return h("section", { class: "panel" }, h("h2", {}, counted(hosts, "host")), body);

  async function load() {
    fill(body, loading("Reading all hosts"));
    try {
      const { data, notes } = await context.tool("summary", { host: "" });
      const table = new DataTable({
        label: "Hosts of the session",
        sort: "host",
        columns: [
          { key: "host", title: "Host", cell: (row) => h("a", {
            href: context.linkTo(context.session, "summary", { host: row.host }),
          }, row.host) },
          { key: "steps", title: "Steps", kind: "count" },
          { key: "median_ps", title: "Median step", kind: "time", width: "8rem" },
          { key: "p95_ps", title: "95th percentile", kind: "time", width: "9rem" },
          { key: "peak_bytes", title: "Largest peak", kind: "bytes", width: "8rem" },
          { key: "first", title: "To fix first", width: "minmax(16rem, 3fr)" },
        ],
        isChosen: (row) => row.host === context.host,
      });
      table.setRows(data.hosts.map(rowOf));
      fill(body, h("p", {}, sentence(data.straggler_text)),
        notes.length > 0 && h("p", { class: "quiet" }, notes.join(" ")), withExport(table, {
          name: `${context.session}_hosts`, json: () => data,
          command: () => commandOf(context, "tool summary", { host: null }) }));
    } catch (error) {
      if (!context.signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

/** @param {Summary} summary */
function rowOf({ profile, time, memory, first, notable }) {
  const peaks = (memory?.allocators ?? []).map((one) => one.peak_bytes);
  return {
    host: profile.host,
    steps: time?.times ? time.steps : null,
    median_ps: time?.times?.median_ps ?? null,
    p95_ps: time?.times?.p95_ps ?? null,
    peak_bytes: peaks.length ? Math.max(...peaks) : null,
    first: first[0]?.title ?? notable[0]?.text ?? WORDING.summary.nothing,
  };
}
