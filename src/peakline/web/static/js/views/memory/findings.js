/** What deserves attention about memory, each with its place on the chart, and what lies behind. */

import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { evidenceParts } from "../../core/finding.js";
import { bytes } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { momentOf, placeOf, placeOfSaving } from "./places.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./places.js").Place} Place */
/** @typedef {import("../../core/table.js").Column} Column */

const OP = "minmax(6rem, 1fr)";
const WAITING = "Looking for leaks, fragmentation and savings";

export class Findings {
  /** @type {any} */
  #data = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {import("./live.js").Change} change
   * @param {(answer: import("../../core/api.js").Answer<any>) => void} onAnswer
   */
  constructor(context, model, change, onAnswer) {
    this.context = context;
    this.model = model;
    this.change = change;
    this.onAnswer = onAnswer;
    this.content = h("div", { class: "stack" }, loading(WAITING));
    const head = h("h2", { id: "findings-heading" }, "Findings");
    this.element = h("section", { class: "panel memory-findings", "aria-labelledby": head.id },
      head, this.content);
  }

  async load() {
    fill(this.content, loading(WAITING));
    try {
      const answer = await this.context.tool("memory_findings");
      this.#data = answer.data;
      this.onAnswer(answer);
      this.draw();
    } catch (error) {
      if (this.context.signal.aborted) return;
      fill(this.content, failed(error, () => void this.load()));
    }
  }

  /** Draw again, as the steps are known now. */
  draw() {
    if (!this.#data) return;
    const { findings, savings, growth, fragmentation, churn } = this.#data;
    const titles = WORDING.memory.sections;
    fill(this.content,
      findings.length ? findings.map((/** @type {any} */ one) => this.#finding(one))
        : h("p", { class: "quiet" },
          WORDING.no_findings[this.model.isMoment ? "moment" : "over_time"]),
      section(titles.savings, savings.length, () =>
        savings.map((/** @type {any} */ one) => this.#saving(one))),
      section(titles.growth, growth.length, () =>
        growth.map((/** @type {any} */ one) => this.#growth(one))),
      section(titles.fragmentation, fragmentation.length, () =>
        fragmentation.map((/** @type {any} */ one) => this.#fragmentation(one))),
      section(titles.churn, churn.length, () =>
        churn.map((/** @type {any} */ one) => this.#churn(one))));
  }

  /** @param {any} finding */
  #finding(finding) {
    const { severity, title, suggestion, evidence } = finding;
    const numbers = h("details", {}, h("summary", {}, "The numbers behind it"));
    once(numbers, () => evidenceParts(evidence));
    return h("article", { class: `finding ${severity}` },
      h("h3", {}, h("span", { class: `badge ${severity}` }, severity), " ", title),
      h("p", {}, suggestion), this.#button(placeOf(finding, this.model)), numbers);
  }

  /** @param {Place | null} place */
  #button(place) {
    if (!place) return null;
    return h("p", {}, h("button", { type: "button", onclick: () => void this.#go(place) }, place.text));
  }

  /** @param {Place} place */
  async #go({ state, find }) {
    if (!find) {
      this.change(state, true);
      return;
    }
    // The evidence counts them; the records know when they are.
    const quoted = (/** @type {string | null | undefined} */ text) =>
      `'${(text ?? "").replace(/'/g, "''")}'`;
    const before = this.model.state.at;
    const { data } = await this.context.sql("select start_ps from buffers where "
      + `op = ${quoted(find)} and allocator = ${quoted(state.allocator)} and start_ps is not null `
      + "order by allocated_bytes desc, start_ps limit 1").catch(() => ({ data: [] }));
    // The reader looks at something else by now, or left.
    if (this.context.signal.aborted || this.model.state.at !== before) return;
    const at = data[0]?.start_ps;
    this.change(typeof at === "number" ? { ...state, at } : state, true);
  }

  /** @param {any} saving */
  #saving(saving) {
    const { title, kind, bytes: saved, suggestion, rows, sentence } = saving;
    const numbers = h("details", {}, h("summary", {}, "Which buffers"));
    once(numbers, () => evidenceParts({ rows }));
    return h("article", { class: "finding" },
      h("h3", {}, h("strong", {}, `−${bytes(saved)} `), `${kind.replace(/_/g, " ")}: ${title}`),
      h("p", { class: "quiet" }, sentence),
      h("p", {}, suggestion), this.#button(placeOfSaving(saving, this.model)), numbers);
  }

  /** @param {any} growth */
  #growth({ allocator, steps, groups, sentence }) {
    const table = steps.length > 1 && list(WORDING.memory.in_use_by_step, [
      { key: "name", title: "Step", width: OP },
      { key: "in_use_bytes", title: "In use then", kind: "bytes", width: "7rem" },
    ], steps.map((/** @type {any} */ one) => ({ ...one, name: one.name || String(one.step) })),
    (row) => {
      const step = this.model.steps?.withId(row.step);
      if (step) this.change(momentOf(allocator, Math.min(step.end_ps, this.model.end), ""), true);
    });
    return h("div", { class: "stack" }, heading(allocator, this.model),
      h("p", {}, sentence),
      groups.length > 0 && list("What grows", [
        { key: "op", title: "Op", width: OP }, { key: "pattern", title: "Pattern", width: "5rem",
          cell: ({ pattern: one }) => one.replace(/_/g, " ") },
        { key: "bytes_per_step", title: "A step", kind: "bytes", width: "5rem" },
      ], groups, (row) => this.change({ allocator, only: row.op ? { within: row.op } : {},
        q: "", group: "buffer", sort: "start_ps" }, true)), table);
  }

  /** @param {any} found */
  #fragmentation({ allocator, forced_allocations: rows, sentence }) {
    return h("div", { class: "stack" }, heading(allocator, this.model), h("p", {}, sentence),
      rows.length > 0 && list(WORDING.memory.forced, [
        { key: "op", title: "Op", width: OP },
        { key: "new_bytes", title: "New", kind: "bytes", width: "5rem" },
        { key: "time_ps", title: "When", kind: "time", width: "5.5rem" },
      ], rows, (row) => this.change(momentOf(allocator, row.time_ps, row.op), true)));
  }

  /** @param {any} found */
  #churn({ allocator, signatures, sentence }) {
    return h("div", { class: "stack" }, heading(allocator, this.model), h("p", {}, sentence),
      signatures.length > 0 && list(WORDING.memory.churn, [
        { key: "op", title: "Op", width: OP },
        { key: "allocations", title: "Times", kind: "count", width: "4.6rem" },
        { key: "bytes", title: "Together", kind: "bytes", width: "5.5rem" },
      ], signatures, (row) => void this.#go({ text: "", find: row.op, state: { allocator, at: null,
        only: row.op ? { within: row.op } : {}, q: "", group: "buffer" } })));
  }
}

/**
 * A table whose rows lead to their place on the chart.
 * @param {string} label
 * @param {Column[]} columns
 * @param {any[]} rows
 * @param {(row: any) => void} onChoose
 */
function list(label, columns, rows, onChoose) {
  const table = new DataTable({ label, columns, onChoose, height: "14rem" });
  table.setRows(rows);
  return withExport(table, { name: label }, h("h4", {}, label));
}

/**
 * @param {string} title
 * @param {number} many
 * @param {() => HTMLElement[]} make
 */
function section(title, many, make) {
  if (!many) return null;
  const element = h("details", { class: "section" }, h("summary", {}, title));
  once(element, make);
  return element;
}

/**
 * What is folded is made when it is opened.
 * @param {HTMLDetailsElement} element
 * @param {() => HTMLElement[]} make
 */
function once(element, make) {
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(...make());
  });
}

/**
 * The allocator's name, where there are several.
 * @param {string} name
 * @param {import("./model.js").Model} model
 */
function heading(name, { allocators }) {
  return allocators.length > 1 && h("h3", {}, name || "(no name)");
}
