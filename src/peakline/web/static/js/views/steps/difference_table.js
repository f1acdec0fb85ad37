/** The ops, or functions, that two steps differ in: how often they ran, and how long, in both. */

import { fill, h } from "../../core/dom.js";
import { count, counted, time, worded } from "../../core/format.js";
import { toolCommand } from "../../core/command.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { partOf, swatch } from "../../core/parts.js";
import { DataTable } from "../../core/table.js";
import { signed } from "./waterfall.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./why.js").Difference} Difference */
/** @typedef {import("./why.js").Work} Work */

export class DifferenceTable {
  /** @type {Difference | null} */
  #shown = null;
  #by = "op";
  #part = "";
  #chosen = "";

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {(changes: Record<string, string | null>) => void} change of the address
   */
  constructor(context, change) {
    this.context = context;
    this.change = change;
    this.table = new DataTable({
      label: "What differs", columns: columns(), height: "24rem",
      isChosen: (row) => row.key === this.#chosen,
      onChoose: (row) => {
        this.change({ work: row.key === this.#chosen ? null : row.key });
        this.#choose(row.key === this.#chosen ? "" : row.key);
      },
      nothing: WORDING.steps.same_part,
    });
    this.buttons = /** @type {const} */ ([["op", "By op"], ["function", "By Python function"]])
      .map(([by, title]) => ({ by, button: h("button", { type: "button", onclick: () => {
        this.change({ why_by: by === "op" ? null : by });
        this.#by = by;
        this.#draw();
      } }, title) }));
    this.found = h("span", { class: "quiet", role: "status" });
    this.events = h("div", { class: "stack" });
    this.element = h("div", { class: "stack" },
      h("div", { class: "row-of" },
        h("div", { class: "row-of tight", role: "group", "aria-label": "Rows" },
          ...this.buttons.map(({ button }) => button)),
        this.found,
        exportMenu({
          name: `${context.session}_step_difference`, rows: () => rowsOf(this.table),
          json: () => this.#shown,
          command: () => toolCommand(context, "step_difference", this.#parameters()),
        })),
      this.table.element, this.events);
  }

  /**
   * @param {Difference} difference
   * @param {{by: string, part: string, work: string}} chosen
   */
  show(difference, { by, part, work }) {
    this.#shown = difference;
    this.#by = by === "function" && difference.frames.length ? by : "op";
    this.#part = part;
    this.#chosen = work;
    this.#draw();
  }

  #parameters() {
    const shown = this.#shown;
    if (!shown) return {};
    return { step: shown.step.step_id,
      last: shown.step.steps > 1 ? shown.step.last_id : null,
      against: shown.against.is_median ? null : shown.against.step_id, device: shown.device };
  }

  #draw() {
    const shown = this.#shown;
    if (!shown) return;
    const works = this.#by === "function" ? shown.frames : shown.ops;
    const total = this.#by === "function" ? shown.frames_total : shown.ops_total;
    for (const { by, button } of this.buttons) {
      button.setAttribute("aria-pressed", String(by === this.#by));
      button.hidden = by === "function" && !shown.frames.length;
    }
    const rows = works.filter((work) => !this.#part || work.part === this.#part)
      .map((work) => ({ ...work, key: keyOf(work) }));
    const parts = shown.parts.filter((part) => !this.#part || part.part === this.#part);
    const left = parts.reduce((sum, part) => sum + part.unattributed_difference_ps, 0);
    this.table.setRows(rows);
    const what = this.#by === "function" ? "function" : "op";
    const more = total > works.length ? worded(WORDING.steps.differ_most,
      { works: count(works.length), total: counted(total, what) }) : counted(rows.length, what);
    this.found.textContent = `${more}${this.#part ? `, ${partOf(this.#part).text}` : ""}; ${
      worded(left ? WORDING.steps.unattributed : WORDING.steps.attributed, { left: signed(left) })}`;
    this.#choose(this.#chosen);
  }

  /** @param {string} key */
  #choose(key) {
    const row = /** @type {(Work & {key: string}) | undefined} */ (
      this.table.rows.find((one) => one.key === key)
        // The picture of all steps names an op, whatever part it is in.
        ?? this.table.rows.find((one) => key !== "" && one.name === key));
    this.#chosen = row?.key ?? key;
    this.table.refresh();
    const shown = this.#shown;
    if (!row || !shown) {
      fill(this.events);
      return;
    }
    fill(this.events, h("h3", {}, row.title),
      h("div", { class: "event-lists" },
        this.#list("In this step", row.events, shown.step),
        this.#list(shown.against.is_median ? WORDING.steps.in_median : "In the other", row.usual_events,
          shown.against)));
  }

  /**
   * @param {string} title
   * @param {import("./why.js").EventLink[]} events
   * @param {import("./why.js").Side} side
   */
  #list(title, events, side) {
    return h("section", {}, h("h4", {}, title),
      events.length ? h("ul", { class: "events" }, ...events.map((event) => h("li", {},
        h("a", { href: eventLink(this.context, event, side) },
          `${time(event.duration_ps)} at ${time(event.start_ps, 6)}`),
        h("span", { class: "quiet" }, ` ${event.line_name}`))))
        : h("p", { class: "quiet" }, WORDING.steps.not_run));
  }
}

/** What a row is called in the address. @param {Work} work */
export function keyOf({ part, name, side }) {
  return `${part} ${side} ${name ?? ""}`;
}

/**
 * An event in the timeline, chosen, in its step.
 * @param {import("../../shell/context.js").Context} context
 * @param {import("./why.js").EventLink} event
 * @param {import("./why.js").Side} side
 */
export function eventLink(context, event, side) {
  // Without a stretch of time the timeline shows the event, and what is around it.
  return context.link("timeline", { event: event.event, tab: "event",
    ...(side.steps === 1 ? { step: side.step_id } : {}) });
}

/** @returns {import("../../core/table.js").Column[]} */
function columns() {
  const both = (/** @type {number} */ one, /** @type {number} */ other) =>
    (one === other ? count(round(one)) : `${count(round(one))} instead of ${count(round(other))}`);
  return [
    { key: "title", title: "Op or function", width: "minmax(12rem, 2fr)" },
    { key: "difference_ps", title: "Adds", kind: "time", width: "6.5rem",
      help: "to the step's time", cell: (row) => signed(row.difference_ps) },
    { key: "count", title: "Calls", kind: "count", width: "8.5rem",
      cell: (row) => both(row.count, row.usual_count) },
    { key: "ps", title: "Takes", kind: "time", width: "6rem", help: "of the step's time",
      cell: (row) => (row.ps ? time(row.ps) : "0") },
    { key: "usual_ps", title: "Instead of", kind: "time", width: "6.5rem",
      help: "of the time of the step that it is compared with",
      cell: (row) => (row.usual_ps ? time(row.usual_ps) : "0") },
    { key: "self_ps", title: "Self time", kind: "time", width: "6.5rem",
      help: "on all threads and devices, hidden behind other work or not",
      cell: (row) => (row.self_ps ? time(row.self_ps) : "0") },
    { key: "part", title: "Part", width: "minmax(10rem, 1fr)", cell: ({ part }) =>
      h("span", {}, swatch(partOf(part)), ` ${partOf(part).text}`) },
  ];
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}
