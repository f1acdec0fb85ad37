/** The range from A to B: what was allocated in it, what of it is still live; a table and a tree. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { bytes, counted } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { toolCommand } from "../../core/command.js";
import { BY, DESCRIBED } from "./state.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./state.js").State} State */

/**
 * The answer of `memory_between`; docs/memory-over-time.md has every field.
 * @typedef {object} Answer
 * @property {string} sentence
 * @property {any[]} rows
 * @property {number} rows_total
 * @property {Record<string, any[]>} tree
 */

const COLUMNS = /** @type {import("../../core/table.js").Column[]} */ ([
  { key: "key", title: "Group" },
  { key: "live_bytes", title: "Still live at B", kind: "bytes", width: "8rem" },
  { key: "live_buffers", title: "Buffers", kind: "count", width: "6rem" },
  { key: "allocated_bytes", title: "Allocated", kind: "bytes", width: "7rem" },
  { key: "allocated_buffers", title: "Buffers", kind: "count", width: "6rem" },
  { key: "live_at_end_bytes", title: "Live at the end", kind: "bytes", width: "8rem" },
]);

export class Between {
  #asking = new AbortController();
  #query = "";
  /** @type {Answer | null} */
  #answer = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {(changes: Partial<State>) => void} change
   */
  constructor(context, model, change) {
    this.context = context;
    this.model = model;
    this.sentence = h("p", { class: "between-sentence", role: "status" });
    this.state = h("div");
    this.by = h("select", { "aria-label": "Group by", onchange: () =>
      change({ parts: /** @type {State["parts"]} */ (this.by.value) }) });
    this.of = h("select", { "aria-label": "The flame graph is of", onchange: () =>
      change({ of: /** @type {State["of"]} */ (this.of.value) }) });
    this.tree = h("select", { "aria-label": "The flame graph is by", onchange: () =>
      change({ tree: /** @type {State["tree"]} */ (this.tree.value) }) });
    this.table = new DataTable({ label: "What was allocated between A and B", columns: COLUMNS,
      sort: "-live_bytes", height: "20rem", nothing: WORDING.between.nothing });
    this.icicle = new Icicle({ label: "What was allocated between A and B, as a tree; the table says "
      + "the same in groups", text: bytes, choose: () => {}, height: "20rem" });
    this.nothing = h("div");
    const head = h("h2", { id: "between-heading" }, "Between A and B");
    const close = h("button", { type: "button", class: "plain", "aria-label": "Leave this range",
      onclick: () => change({ a: null, b: null }) }, "×");
    this.element = h("section", { class: "panel stack memory-between", "aria-labelledby": head.id,
      hidden: true },
    h("div", { class: "row-of" }, head, h("span", { class: "grow" }),
      h("button", { type: "button", onclick: () => this.#zoom() }, "Zoom to it"),
      exportMenu({ name: `${context.session}-between`, rows: () => rowsOf(this.table),
        json: () => this.#answer, picture: () => this.icicle.picture(), command: () => toolCommand(context, "memory_between", this.#question()) }),
      close),
    this.sentence, this.state,
    h("div", { class: "between-parts" },
      h("div", { class: "stack" }, h("div", { class: "row-of" }, h("label", {}, "Table by ", this.by)),
        this.table.element),
      h("div", { class: "stack" }, h("div", { class: "row-of" },
        h("label", {}, "Flame graph of ", this.of), h("label", {}, "by ", this.tree)),
      this.icicle.element, this.nothing)));
  }

  destroy() {
    this.#asking.abort();
    this.icicle.destroy();
  }

  #zoom() {
    const { a, b } = this.model.state;
    if (a !== null && b !== null) this.model.viewport.bring(a, b, 0.1);
  }

  #question() {
    const { allocator, state } = this.model;
    return { allocator: allocator?.name, start_ps: state.a, end_ps: state.b, group: state.parts,
      tree: state.tree, tree_of: state.of, limit: 1000 };
  }

  /**
   * Show the range that the state has; nothing without one.
   * @param {boolean} isDescribed whether the profile says what buffers are for
   * @param {boolean} hasStacks whether it has call stacks
   */
  async show(isDescribed, hasStacks) {
    const { state } = this.model, { a, b } = state;
    this.element.hidden = a === null || b === null;
    if (a === null || b === null) {
      this.#query = "";
      return;
    }
    const names = /** @type {State["parts"][]} */ (Object.keys(BY)).filter((name) =>
      name === state.parts || (name === "stack" ? hasStacks : isDescribed
        || !(/** @type {readonly string[]} */ (DESCRIBED)).includes(name)));
    options(this.by, names.map((name) => [name, BY[name].toLowerCase()]), state.parts);
    options(this.of, [["live", WORDING.between.live], ["allocated", WORDING.between.allocated]], state.of);
    options(this.tree, [["scope", "scope"], ...(hasStacks || state.tree === "stack"
      ? /** @type {[string, string][]} */ ([["stack", "Python stack"]]) : [])], state.tree);
    const query = this.#question(), text = JSON.stringify(query);
    if (text === this.#query) return;
    this.#query = text;
    this.#asking.abort();
    this.#asking = new AbortController();
    fill(this.state, loading("Comparing both moments"));
    try {
      const { data } = await this.context.tool("memory_between", query,
        AbortSignal.any([this.#asking.signal, this.context.signal]));
      fill(this.state);
      this.#answer = data;
      this.#fill(data);
    } catch (error) {
      if (isAbort(error)) return;
      this.#query = "";
      fill(this.state, failed(error, () => void this.show(isDescribed, hasStacks)));
    }
  }

  /** @param {Answer} data */
  #fill(data) {
    this.sentence.textContent = data.sentence;
    this.table.setRows(data.rows.map((row) => ({ ...row, key: row.key || "(not recorded)" })));
    const { id = [], label = [], parent = [], bytes: sizes = [], count = [] } = data.tree;
    this.icicle.element.hidden = !id.length;
    if (id.length) {
      fill(this.nothing);
      this.icicle.show({ id, label, parent, value: sizes,
        note: count.map((/** @type {number} */ many) => (many ? counted(many, "buffer") : "")),
        isRest: id.map((one) => String(one).startsWith("rest:")) });
    } else {
      fill(this.nothing, empty("Nothing to draw", this.model.state.of === "live"
        ? WORDING.between.all_freed : WORDING.between.nothing_allocated));
    }
  }
}

/**
 * @param {HTMLSelectElement} select
 * @param {[string, string][]} names value and text
 * @param {string} chosen
 */
function options(select, names, chosen) {
  const texts = names.map(([value]) => value).join();
  if (select.dataset["names"] !== texts) {
    select.dataset["names"] = texts;
    fill(select, names.map(([value, text]) => h("option", { value }, text)));
  }
  select.value = chosen;
}
