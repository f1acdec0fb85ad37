/** Kernels of GPUs: how often and how long each ran, and with which launch dimensions. */

import { sqlCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { counted, percent, time, worded } from "../../core/format.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { WORDING } from "../../core/wording.js";

const QUERY = "select * from kernels order by total_ps desc";
const CORES = { yes: "used", could: "could be used", no: "" };

/** @type {import("./index.js").MountPart} */
export function mountKernels(facts, body, params, signal) {
  const { context } = facts;
  /** @type {(params: import("./index.js").Params) => void} */
  let filter = () => undefined;
  void load();
  return {
    update(changed) {
      params = changed;
      filter(params);
    },
  };

  async function load() {
    fill(body, loading("Adding up the kernels"));
    try {
      const known = await facts.tables();
      const answer = known.includes("kernels") ? await facts.sql(QUERY)
        : { data: [], warnings: [], notes: [] };
      if (signal.aborted) return;
      if (!answer.data.length) {
        fill(body, notices(answer), empty(WORDING.kernels.none, WORDING.kernels.instead, " ", h("a", { href: context.link("steps", { part: "ops" }) }, "Ops")));
        return;
      }
      show(answer);
    } catch (error) {
      if (!signal.aborted) fill(body, failed(error, () => void load()));
    }
  }

  /** @param {import("../../core/api.js").Answer<any[]>} answer */
  function show(answer) {
    const whole = answer.data.reduce((sum, row) => sum + row.total_ps, 0);
    const rows = answer.data.map((row) => ({
      ...row,
      share: row.total_ps / Math.max(whole, 1),
      cores: row.uses_tensor_cores ? CORES.yes : row.could_use_tensor_cores ? CORES.could : CORES.no,
    }));
    const field = h("input", { type: "search", id: "kernel-search", placeholder: "kernel or op",
      size: 32, spellcheck: "false" });
    const status = h("span", { class: "quiet", role: "status" });
    const table = new DataTable({
      label: "Kernels", columns: COLUMNS, sort: params["sort"] || "-total_ps",
      height: "max(20rem, calc(100vh - 17rem))",
      onSort: (sort) => context.change({ sort }),
      nothing: WORDING.kernels.nothing,
    });
    field.addEventListener("input", () => {
      context.change({ q: field.value });
      draw(field.value);
    });
    filter = (changed) => {
      field.value = changed["q"] ?? "";
      draw(field.value);
    };
    const unused = rows.filter((row) => row.cores === CORES.could)
      .reduce((sum, row) => sum + row.total_ps, 0);
    fill(body, notices(answer),
      h("div", { class: "row-of" }, h("label", { for: "kernel-search" }, "Search"), field, status,
        h("span", { class: "grow" }), exportMenu({ name: `${context.session}_kernels`,
          rows: () => rowsOf(table), command: () => sqlCommand(context, QUERY) })),
      unused > 0 && h("p", {}, worded(WORDING.kernels.unused,
        { share: percent(unused / Math.max(whole, 1)) })),
      table.element);
    filter(params);

    /** @param {string} search */
    function draw(search) {
      const text = search.toLowerCase();
      const result = rows.filter((row) => !text || row.kernel.toLowerCase().includes(text)
        || (row.op ?? "").toLowerCase().includes(text));
      table.setRows(result);
      status.textContent = `${counted(result.length, "kernel")}, `
        + `${time(result.reduce((sum, row) => sum + row.total_ps, 0))} in all`;
    }
  }
}

/** @type {import("../../core/table.js").Column[]} */
const COLUMNS = [
  { key: "kernel", title: "Kernel", width: "minmax(18rem, 3fr)" },
  { key: "op", title: "Op", width: "minmax(11rem, 2fr)" },
  { key: "total_ps", title: "Total", kind: "time", width: "6.5rem" },
  { key: "share", title: "Share", kind: "percent", width: "5rem", help: "of all kernels' time" },
  { key: "occurrences", title: "Runs", kind: "count", width: "5.5rem" },
  { key: "min_ps", title: "Shortest", kind: "time", width: "6.5rem" },
  { key: "median_ps", title: "Median", kind: "time", width: "6.5rem" },
  { key: "p95_ps", title: "95th perc.", kind: "time", width: "6.5rem" },
  { key: "max_ps", title: "Longest", kind: "time", width: "6.5rem" },
  { key: "cores", title: "Tensor cores", width: "9rem",
    help: "known from the kernel's name, and from its op" },
  { key: "grid", title: "Grid", width: "7rem" },
  { key: "block", title: "Block", width: "7rem" },
  { key: "registers_per_thread", title: "Registers", kind: "count", width: "6.5rem",
    help: "per thread" },
  { key: "static_shared_bytes", title: "Static shared", kind: "bytes", help: "of a block" },
  { key: "dynamic_shared_bytes", title: "Dynamic shared", kind: "bytes", width: "8.5rem",
    help: "of a block" },
  { key: "occupancy_percent", title: "Occupancy", kind: "number", width: "7rem",
    help: "theoretical, percent",
    cell: (row) => (row.occupancy_percent ? `${row.occupancy_percent.toFixed(1)}%` : "–") },
];
