/** A measured range: how long it is, and which events are in it. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { counted, time } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";

const MOST_NAMES = 500;

export class Range {
  /** @type {number | null} */
  from = null;
  /** @type {number | null} */
  to = null;
  /** @type {AbortController | null} */
  #asking = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {(text: string) => void} search
   * @param {() => void} zoom
   * @param {() => void} clear
   */
  constructor(context, search, zoom, clear) {
    this.context = context;
    this.zoom = zoom;
    this.clear = clear;
    this.table = new DataTable({
      label: "Events in the range by name", sort: "-inside_ps", height: "100%",
      nothing: "nothing runs in it",
      columns: [
        { key: "name", title: "Name" }, { key: "events", title: "Events", kind: "count" },
        { key: "inside_ps", title: "Time in it", kind: "time",
          help: "durations of the events, cut at the ends of the range; of nested events each counts" },
        { key: "longest_ps", title: "Longest", kind: "time" },
      ],
      onChoose: (row) => search(row.name),
    });
    this.element = h("div", { class: "tl-fill" });
    this.#none();
  }

  /**
   * Show a range while it is dragged; nothing is asked.
   * @param {number | null} from
   * @param {number | null} to
   */
  set(from, to) {
    this.from = from === null ? null : Math.round(from);
    this.to = to === null ? null : Math.round(to);
    if (this.from === null) this.#none();
  }

  /** Ask what is in it. */
  async load() {
    this.#asking?.abort();
    const ends = new AbortController();
    this.#asking = ends;
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    const { from, to } = this;
    if (from === null || to === null) return;
    const head = h("div", { class: "tl-head" },
      h("h3", {}, `${time(to - from, 6)}`),
      h("span", { class: "quiet" }, `from ${time(from, 8)} to ${time(to, 8)}`),
      h("div", { class: "row-of" },
        h("button", { type: "button", onclick: this.zoom }, "Zoom to it"),
        h("button", { type: "button", onclick: this.clear }, "Clear"),
        h("a", { href: this.context.link("memory", { from, to }) }, "Memory of it")));
    fill(this.element, head, loading("Adding up what is in it"));
    try {
      const rows = await this.#rows(from, to, ends.signal);
      this.table.setRows(rows);
      const events = rows.reduce((sum, row) => sum + row.events, 0);
      head.insertBefore(h("span", { class: "quiet" }, `${counted(events, "event")}, ${
        counted(rows.length, "name")}${rows.length === MOST_NAMES ? " (those with most time)" : ""}`),
      head.lastElementChild);
      fill(this.element, head, this.table.element);
    } catch (error) {
      if (!isAbort(error)) fill(this.element, head, failed(error, () => void this.load()));
    }
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {AbortSignal} signal
   * @returns {Promise<{name: string, events: number, inside_ps: number, longest_ps: number}[]>}
   */
  async #rows(from, to, signal) {
    for (const table of ["events", "op_runs"]) {
      const { data } = await this.context.sql(
        "SELECT name, count(*) AS events, "
        + `sum(least(start_ps + duration_ps, ${to}) - greatest(start_ps, ${from})) AS inside_ps, `
        + `max(duration_ps) AS longest_ps FROM ${table} `
        + `WHERE start_ps < ${to} AND start_ps + duration_ps > ${from} `
        + `GROUP BY name ORDER BY inside_ps DESC LIMIT ${MOST_NAMES}`, signal);
      if (data.length) return data;
    }
    return [];
  }

  #none() {
    this.#asking?.abort();
    fill(this.element, empty("No range is marked",
      "Drag with Shift over the lanes, or choose an event and press m."));
  }
}
