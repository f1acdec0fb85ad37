/** The rows of an answer: a table, a chart, downloads. */

import { request, sessionPath } from "../../core/api.js";
import { sqlCommand } from "../../core/command.js";
import { copyText } from "../../core/copy.js";
import { announce, fill, h } from "../../core/dom.js";
import { count, counted, time } from "../../core/format.js";
import { columnsOf } from "../../core/kinds.js";
import { fileName, save } from "../../core/exporting.js";
import { failed, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { ResultChart } from "./chart.js";
import { asking, MOST_ROWS } from "./query.js";

const FORMATS = { csv: "CSV", json: "JSON", parquet: "Parquet" };

export class Results {
  #isExact = false;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {string} query
   * @param {import("./query.js").Found} result
   * @param {{host: string, sort: string, change: (changes: Record<string, string | null>) => void}} state
   */
  constructor(context, query, result, { host, sort, change }) {
    this.context = context;
    this.host = host;
    this.sort = sort;
    this.change = change;
    this.query = query;
    this.found = result;
    this.chart = new ResultChart(result, change);
    this.rows = h("div", {});
    this.failure = h("div", {});
    const exact = h("input", { type: "checkbox", id: "exact" });
    exact.addEventListener("change", () => {
      this.#isExact = exact.checked;
      this.#drawTable();
    });
    this.element = h("section", { class: "panel stack" },
      h("div", { class: "row-of" },
        h("h2", { class: "grow flat" }, captionOf(result)),
        result.rows.length > 0 && h("span", { class: "row-of tight" },
          exact, h("label", { for: "exact" }, "Exact numbers")),
        result.names.length > 0 && h("span", { class: "row-of tight", role: "group",
          "aria-label": "Download" }, ...Object.entries(FORMATS).map(([format, title]) =>
          h("button", { type: "button", onclick: () => void this.#download(format) }, title)), copyText("Copy the command", () => sqlCommand(context, query, host)))),
      this.failure,
      notices(result),
      result.total > MOST_ROWS && h("p", {}, `The first ${count(MOST_ROWS)} rows are shown; `
        + "a download has all, and the query may sort, group or limit them."),
      result.rows.length > 0 && this.chart.element,
      result.rows.length > 0 ? this.rows : h("p", { class: "quiet" },
        "The query found nothing. Its tables are there; look whether a condition is too narrow."));
    if (result.rows.length) this.#drawTable();
    announce(captionOf(result));
  }

  /** @param {Record<string, string>} params */
  update(params) {
    this.chart.update(params);
  }

  destroy() {
    this.chart.destroy();
  }

  #drawTable() {
    const { rows, names } = this.found;
    const columns = columnsOf(rows, names, (name) => name);
    if (this.#isExact) {
      for (const column of columns) {
        column.cell = (row) => (row[column.key] === null ? "" : String(row[column.key]));
      }
    }
    const table = new DataTable({
      label: "Rows of the query", columns, height: "60vh", sort: this.sort,
      onSort: (sort) => {
        this.sort = sort;
        this.change({ sort });
      },
    });
    table.setRows(rows);
    fill(this.rows, table.element);
  }

  /** @param {string} format */
  async #download(format) {
    fill(this.failure);
    const { context, host, query } = this;
    try {
      const response = await request(sessionPath(context.session, "sql"),
        { ...asking(context, host, query, format), signal: context.signal });
      save(await response.blob(), `${fileName(context.session)}_query.${format}`);
    } catch (error) {
      if (!context.signal.aborted) fill(this.failure, failed(error));
    }
  }
}

/** @param {import("./query.js").Found} found */
function captionOf({ total, names, ms }) {
  return `${counted(total, "row")}${names.length ? `, ${counted(names.length, "column")}` : ""}, `
    + `in ${time(ms * 1e9, 3)}`;
}
