/** Where in a program the time of ops goes: by function, by module, or by the shapes of inputs. */

import { sqlCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { counted, time } from "../../core/format.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { WORDING } from "../../core/wording.js";
import { shareColumns, withShares } from "./sides.js";

/** @typedef {import("../../core/table.js").Column} Column */
/**
 * @typedef {object} Kind
 * @property {string} table of SQL
 * @property {string} label
 * @property {string} key the column that a search is in too
 * @property {string} hint what is searched
 * @property {string} missing what to record, where the table has no row
 * @property {Column[]} columns after the first two
 */

/** @type {Column[]} */
const SPENT = [
  { key: "self_ps", title: "Self time", kind: "time", width: "7rem" },
  { key: "total_ps", title: "Total", kind: "time", width: "7rem" },
  { key: "occurrences", title: "Runs", kind: "count", width: "6rem" },
];

/** @type {import("./index.js").MountPart} */
export const mountFunctions = placesPart({
  table: "function_time", label: "Functions", key: "function", hint: "function or file",
  missing: WORDING.ops.records_functions,
  columns: [
    { key: "function", title: "Function", width: "minmax(14rem, 1fr)",
      cell: ({ function: name, file }) => name ?? (file ? "" : WORDING.ops.no_function) },
    { key: "place", title: "File and line", width: "minmax(12rem, 1fr)" },
    ...SPENT,
  ],
});

/** @type {import("./index.js").MountPart} */
export const mountModules = placesPart({
  table: "module_time", label: "Modules", key: "module", hint: "module",
  missing: WORDING.ops.records_modules,
  columns: [
    { key: "module", title: "Module", width: "minmax(14rem, 1fr)",
      cell: ({ module }) => module ?? "(no module)" },
    ...SPENT,
  ],
});

/** @type {import("./index.js").MountPart} */
export const mountShapes = placesPart({
  table: "shape_time", label: "Ops by the shapes of their inputs", key: "input_shape",
  hint: "op or shape",
  missing: WORDING.ops.records_shapes,
  columns: [
    { key: "op", title: "Op", width: "minmax(12rem, 1fr)" },
    { key: "input_shape", title: "Shapes of inputs", width: "minmax(14rem, 1.5fr)" },
    ...SPENT,
    { key: "median_ps", title: "Median", kind: "time", width: "6.5rem" },
    { key: "p95_ps", title: "95th perc.", kind: "time", width: "6.5rem" },
    { key: "max_ps", title: "Longest", kind: "time", width: "6.5rem" },
  ],
});

/**
 * @param {Kind} kind
 * @returns {import("./index.js").MountPart}
 */
function placesPart({ table, label, key, hint, missing, columns }) {
  return (facts, body, params, signal) => {
    const { context } = facts;
    /** @type {(params: import("./index.js").Params) => void} */
    let filter = () => undefined;
    const query = `select * from ${table} order by self_ps desc`;
    void load();
    return {
      update(changed) {
        params = changed;
        filter(params);
      },
    };

    async function load() {
      fill(body, loading("Adding up the ops"));
      try {
        const answer = await facts.sql(query);
        if (signal.aborted) return;
        if (answer.data.length) {
          show(answer);
        } else {
          fill(body, notices(answer), empty(WORDING.ops.not_recorded, missing));
        }
      } catch (error) {
        if (!signal.aborted) fill(body, failed(error, () => void load()));
      }
    }

    /** @param {import("../../core/api.js").Answer<any[]>} answer */
    function show(answer) {
      const isBoth = new Set(answer.data.map(({ side }) => side)).size > 1;
      const rows = withShares(answer.data).map((row) => ({
        ...row, place: row.file ? `${row.file}:${row.line}` : "",
      }));
      const field = h("input", { type: "search", id: "place-search", size: 32,
        placeholder: hint, spellcheck: "false" });
      const result = h("span", { class: "quiet", role: "status" });
      const shown = new DataTable({
        label, sort: params["sort"] || "-self_ps", height: "max(20rem, calc(100vh - 17rem))",
        columns: [
          ...(isBoth ? [/** @type {const} */ ({ key: "side", title: "Side", width: "5rem" })] : []),
          ...columns.flatMap((one) => one.key === "self_ps" ? [one, ...shareColumns(isBoth)] : [one]),
        ],
        onSort: (sort) => context.change({ sort }),
        nothing: WORDING.ops.no_row,
      });
      field.addEventListener("input", () => {
        context.change({ q: field.value });
        draw(field.value);
      });
      filter = (changed) => {
        field.value = changed["q"] ?? "";
        draw(field.value);
      };
      fill(body, notices(answer),
        h("div", { class: "row-of" }, h("label", { for: "place-search" }, "Search"), field, result,
          h("span", { class: "grow" }), exportMenu({ name: `${context.session}_${table}`,
            rows: () => rowsOf(shown), command: () => sqlCommand(context, query) })),
        shown.element);
      filter(params);

      /** @param {string} search */
      function draw(search) {
        const text = search.toLowerCase();
        const fitting = rows.filter((row) => !text
          || [row[key], row.op, row.place].some((one) => (one ?? "").toLowerCase().includes(text)));
        shown.setRows(fitting);
        result.textContent = `${counted(fitting.length, "row")}, `
          + `${time(fitting.reduce((sum, row) => sum + row.self_ps, 0))} of self time`;
      }
    }
  };
}
