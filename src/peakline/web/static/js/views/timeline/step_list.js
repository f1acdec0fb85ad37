/** The first steps as a table, of which a row is followed by a click; read when it is opened. */

import { isAbort } from "../../core/api.js";
import { sqlCommand, toolCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { rowsOfObjects, withExport } from "../../core/exporting.js";
import { count, worded } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { stackOf } from "./ask.js";
import { WORDING } from "../../core/wording.js";

const LISTED = 2000;
const ALL = "select step_id, name, device, start_ps, end_ps, wall_ps, is_cut_off from step_breakdown order by start_ps";

/** @typedef {import("./steps.js").Step} Step */

export class StepList {
  /** @type {(string | null)[]} */
  #devices = [];
  #total = -1;
  #isRead = false;
  #isOpen = false;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {{follow(step: Step): void, isChosen(step: Step): boolean}} actions
   */
  constructor(context, actions) {
    this.context = context;
    this.actions = actions;
    this.table = new DataTable({
      label: "Steps", sort: "start_ps", height: "100%", nothing: "no steps",
      columns: [
        { key: "name", title: "Step", cell: nameOf }, { key: "device", title: "Device", width: "12rem" },
        { key: "start_ps", title: "Begins", kind: "time" },
        { key: "wall_ps", title: "Takes", kind: "time", help: "from its begin to its end" },
      ],
      onChoose: (row) => actions.follow(row), isChosen: (row) => actions.isChosen(row),
    });
    this.element = h("div", { class: "tl-fill" }, loading("Looking for steps"));
  }

  /**
   * @param {(string | null)[]} devices in the order of the band's rows
   * @param {number} total how many steps there are
   */
  setDevices(devices, total) {
    this.#devices = devices;
    this.#total = total;
    if (!total) fill(this.element, empty("No steps", `${WORDING.no_steps}.`));
    else if (this.#isOpen) void this.#load();
  }

  /** The reader sees it. */
  opened() {
    this.#isOpen = true;
    if (this.#total > 0) void this.#load();
  }

  /** Bring the chosen one into view, where it is listed. */
  reveal() {
    const place = this.table.rows.findIndex((row) => this.actions.isChosen(row));
    if (place >= 0) this.table.reveal(place);
    else this.table.refresh();
  }

  async #load() {
    if (this.#isRead) return;
    this.#isRead = true;
    const isStacked = stackOf(this.context) !== null;
    try {
      const { data } = await this.context.tool("step_breakdown",
        { limit: LISTED, ...(isStacked ? { host: null } : {}) });
      this.table.setRows(data["steps"].map((/** @type {any} */ row) => {
        const device = isStacked ? [row.host, row.device].filter(Boolean).join(" › ") : row.device;
        return { ...row, device, row: Math.max(0, this.#devices.indexOf(device)) };
      }));
    } catch (error) {
      this.#isRead = false;
      if (!isAbort(error)) fill(this.element, failed(error, () => void this.#load()));
      return;
    }
    fill(this.element, withExport(this.table, { name: `${this.context.session}_steps`,
      ...(isStacked ? { command: () => toolCommand(this.context, "step_breakdown") }
        : { rows: async () => rowsOfObjects((await this.context.sql(ALL)).data),
          command: () => sqlCommand(this.context, ALL) }) },
    this.#total > LISTED && h("span", { class: "quiet" },
      `${worded(WORDING.timeline.first_steps, { listed: count(LISTED), steps: count(this.#total) })} `,
      h("a", { href: this.context.link("steps") }, "Steps and ops"))));
    this.reveal();
  }
}

/** @param {{name: string, is_cut_off: boolean}} step */
export function nameOf({ name, is_cut_off }) {
  return is_cut_off ? `${name} (cut off)` : name;
}
