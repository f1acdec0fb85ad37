/** The table of steps: all of them where they are few, else what is seen of it. */

import { sqlCommand } from "../../core/command.js";
import { h } from "../../core/dom.js";
import { exportMenu, rowsOfObjects } from "../../core/exporting.js";
import { time } from "../../core/format.js";
import { PARTS } from "../../core/parts.js";
import { failed } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { StepPages } from "./source.js";

/** @typedef {import("./facts.js").Step} Step */

export class StepsTable {
  /** @type {DataTable | null} */
  #table = null;
  /** @type {StepPages | null} */
  #pages = null;
  #sort;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {{isChosen(row: Step): boolean, choose(row: Step): void}} actions
   * @param {string} sort
   */
  constructor(context, actions, sort) {
    this.context = context;
    this.actions = actions;
    this.#sort = sort;
    this.place = h("div", { class: "stack" });
  }

  /** @param {import("./source.js").StepSource} source */
  setSource(source) {
    const isRemote = !source.isWhole;
    const table = new DataTable({
      label: "Steps", columns: columns(source.about.parts), height: "26rem", sort: this.#sort,
      remote: isRemote,
      isChosen: this.actions.isChosen, onChoose: this.actions.choose,
      onSort: (sort) => {
        this.#sort = sort;
        this.context.change({ sort });
        this.#pages?.order(sort);
        if (this.#pages) table.setRows(this.#pages.rows);
      },
      onSeen: (first, last) => this.#pages?.see(first, last),
    });
    this.#table = table;
    this.#pages = null;
    const query = queryOf(source.device);
    const menu = exportMenu({ name: `${this.context.session}_steps`,
      rows: async () => rowsOfObjects((await this.context.sql(query)).data),
      command: () => sqlCommand(this.context, query) });
    this.place.replaceChildren(h("div", { class: "row-of" }, h("h2", { class: "grow" }, "Steps"), menu),
      table.element);
    if (!isRemote) {
      table.setRows(source.rows);
      return;
    }
    const pages = new StepPages(source, () => table.setRows(pages.rows), (error) =>
      this.place.append(failed(error, () => this.setSource(source))));
    this.#pages = pages;
    pages.order(this.#sort);
    table.setRows(pages.rows);
  }

  /** Mark a step, and bring it into view where that is known. @param {Step | undefined} step */
  choose(step) {
    const table = this.#table;
    if (!table) return;
    const isByTime = !this.#sort || this.#sort === "start_ps";
    const place = !step ? -1 : this.#pages && isByTime ? step.place
      : table.rows.findIndex((row) => row?.step_id === step.step_id);
    if (place >= 0) table.reveal(place);
    else table.refresh();
  }
}

/** All steps of a device, whatever of them is on the page. @param {string} device "" for all there are */
function queryOf(device) {
  const where = device ? ` where device = '${device.replace(/'/g, "''")}'` : "";
  return `select * from step_breakdown${where} order by start_ps`;
}

/**
 * @param {string[]} parts those that there are
 * @returns {import("../../core/table.js").Column[]}
 */
function columns(parts) {
  return [
    { key: "name", title: "Step", width: "minmax(9rem, 1fr)",
      cell: (row) => (row.is_cut_off ? h("span", {}, row.name || `step ${row.step_id}`,
        h("span", { class: "badge after" }, "cut off")) : row.name || `step ${row.step_id}`) },
    { key: "wall_ps", title: "Time", kind: "time", width: "6.5rem" },
    ...PARTS.filter(({ name }) => parts.includes(name)).map(({ name, text }) => /** @type {const} */ ({
      key: `${name}_ps`, title: HEADS[name] ?? text, kind: "time", help: text,
      width: (HEADS[name] ?? text).length > 11 ? "8.5rem" : "6.5rem",
      cell: (/** @type {any} */ row) => (row[`${name}_ps`] ? time(row[`${name}_ps`]) : "0"),
    })),
    { key: "gap_before_ps", title: "Gap before", kind: "time", width: "7rem",
      help: "since the end of the step before" },
    { key: "start_ps", title: "Begins at", kind: "time", width: "6.5rem" },
  ];
}

/** Heads of the table's columns: short, so that all have room. @type {Record<string, string>} */
const HEADS = {
  compute: "Compute", communication: "Collectives", device_to_device: "Copies between",
  device_to_host: "Copies to host", host_to_device: "Copies to device", input_wait: "Input wait",
  compile: "Compile", launch: "Launch", host_compute: "Host", idle: "Idle", unknown: "No event",
};
