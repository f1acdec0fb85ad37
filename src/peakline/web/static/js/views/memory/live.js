/** What is live at the moment looked at: facts, a table of buffers or groups, and the icicle. */

import { isAbort } from "../../core/api.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { bytes, count, counted, shares, worded } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { makeBuffer } from "./buffer.js";
import { toolCommand } from "../../core/command.js";
import { makeFacts } from "./facts.js";
import { LiveIcicle } from "./icicle.js";
import { isPointed, pointedOf } from "./pointed.js";
import { columnsOf, isSpecial, stepName } from "./rows.js";
import { DESCRIBED, FILTERS, GROUPS } from "./state.js";
import { WORDING } from "../../core/wording.js";

const PAGE = 500;
const SEARCH_MS = 200;

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Group} Group */
/** @typedef {import("./state.js").Filter} Filter */
/** @typedef {import("./model.js").Moment} Moment */
/** @typedef {(changes: Partial<State>, push?: boolean) => void} Change */

export class Live {
  #asking = new AbortController();
  /** @type {DataTable | null} */
  #table = null;
  /** What the table was made for. */
  #made = "";
  /** The rows that are there, of those of the same question. @type {any[]} */
  #rows = [];
  /** The moment and allocator that the icicle shows. */
  #drawn = "";
  /** Whether the profile says what buffers are for. */
  isDescribed = false;
  /** Whether it has call stacks of buffers. */
  hasStacks = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {Change} change
   * @param {() => void} result the moment's answer, or the chosen buffer, is there
   */
  constructor(context, model, change, result) {
    this.context = context;
    this.model = model;
    this.change = change;
    this.found = result;
    this.ends = model.onPoint(() => this.#table?.mark());
    this.facts = makeFacts(context, model, change);
    this.buffer = makeBuffer(context, model, change);
    this.icicle = new LiveIcicle(context, (path) => this.#within(path), (tree) => change({ tree }));
    this.search = h("input", { type: "search", placeholder: "op, type, shape, region, module",
      "aria-label": "Search what is live", spellcheck: "false", oninput: () => this.#type() });
    this.groups = h("div", { class: "row-of groups", role: "group", "aria-label": "Group by" });
    this.chips = h("div", { class: "row-of" });
    this.total = h("p", { class: "quiet total", role: "status" });
    this.place = h("div");
    this.more = h("button", { type: "button", hidden: true, onclick: () => void this.#ask(true) },
      "Show more rows");
    this.state = h("div");
    const head = h("h2", { id: "live-heading" }, "Live at this moment");
    this.element = h("section", { class: "panel stack memory-live", "aria-labelledby": head.id },
      h("div", { class: "row-of" }, head, h("span", { class: "grow" }), exportMenu({
        name: `${context.session}-live`,
        rows: () => (this.#table ? rowsOf(this.#table) : { columns: [], rows: [] }),
        json: () => model.moment, command: () => toolCommand(context, "live_memory", this.#question()) })),
      this.facts.element, this.state,
      h("div", { class: "live-parts" },
        h("div", { class: "stack live-list" },
          h("div", { class: "row-of" }, this.groups, h("span", { class: "grow" }), this.search),
          this.chips, this.buffer.element, this.place,
          h("div", { class: "row-of" }, this.total, this.more)),
        this.icicle.element));
  }

  focusSearch() {
    this.search.focus();
    this.search.select();
  }

  /** Another buffer is chosen, of the same rows. */
  async showBuffer() {
    const signal = AbortSignal.any([this.#asking.signal, this.context.signal]);
    try {
      await this.buffer.show(this.#rows, signal);
    } catch (error) {
      if (!isAbort(error)) fill(this.state, failed(error));
      return;
    }
    this.#table?.refresh();
    this.found();
  }

  /** The steps are known now: draw their names. */
  nameSteps() {
    const { moment } = this.model;
    if (!moment) return;
    // The columns are as wide as the names.
    this.#made = "";
    this.#fillTable(moment, true);
    this.facts.show(moment);
  }

  destroy() {
    this.ends();
    this.#asking.abort();
    clearTimeout(this.#typing);
    this.icicle.destroy();
  }

  /** Another address is shown: what is still being typed belongs to the one before. */
  forget() {
    clearTimeout(this.#typing);
    this.#typing = undefined;
  }

  /** What is asked for changed. */
  show() {
    const { state } = this.model;
    // Not while the reader types: that is asked for in a moment.
    if (!this.#typing && this.search.value.trim() !== state.q) this.search.value = state.q;
    this.#showGroups();
    fill(this.chips, Object.entries(state.only).map(([name, value]) => h("span", { class: "chip" },
      h("span", {}, `${FILTERS[/** @type {Filter} */ (name)]} `, h("strong", {}, name === "step" ? stepName(Number(value), this.model) : value)),
      h("button", { type: "button", class: "plain", "aria-label": `Remove the filter ${value}`,
        onclick: () => this.#without(/** @type {Filter} */ (name)) }, "×"))));
    this.chips.hidden = !Object.keys(state.only).length;
    this.icicle.select(state.only.within ?? "");
    void this.#ask(false);
  }

  /** What buffers can be put together by, as far as this profile says it of any. */
  #showGroups() {
    const { group } = this.model.state;
    const names = Object.keys(GROUPS).filter((name) => name === group || this.isDescribed
      || !(/** @type {readonly string[]} */ (DESCRIBED)).includes(name));
    fill(this.groups, h("span", { class: "quiet" }, "By"), names.map((name) => h("button", {
      type: "button", "aria-pressed": String(group === name), "data-group": name,
      onclick: () => {
        this.change({ group: /** @type {Group} */ (name), sort: "", buffer: null });
        const pressed = this.groups.querySelector(`[data-group="${name}"]`);
        if (pressed instanceof HTMLElement) pressed.focus();
      },
    }, GROUPS[/** @type {Group} */ (name)])));
  }

  #question() {
    const { state, allocator } = this.model;
    return { allocator: allocator?.name, at_ps: state.at, group: state.group, search: state.q,
      ...state.only, sort: state.sort.replace(/^-/, "") || null,
      descending: state.sort ? state.sort.startsWith("-") : null };
  }

  /** @param {boolean} isMore the next rows of the same question */
  async #ask(isMore) {
    this.#asking.abort();
    this.#asking = new AbortController();
    const signal = AbortSignal.any([this.#asking.signal, this.context.signal]);
    const { state, allocator } = this.model;
    const moment = `${allocator?.name} ${state.at} ${state.tree}`;
    const needsScopes = this.#drawn !== moment;
    const waiting = loading("Looking at this moment");
    fill(this.state, waiting);
    try {
      const { data } = await this.context.tool("live_memory", {
        ...this.#question(),
        offset: isMore ? this.#rows.length : 0, limit: PAGE, tree: needsScopes ? state.tree : null,
      }, signal);
      this.model.moment = data;
      this.hasStacks = data.has_stacks;
      if (this.isDescribed !== data.is_described) {
        this.isDescribed = data.is_described;
        this.#showGroups();
      }
      this.#rows = isMore ? [...this.#rows, ...data.rows] : data.rows;
      fill(this.state);
      this.facts.show(data);
      this.#fillTable(data, isMore);
      if (needsScopes) {
        this.#drawn = moment;
        this.icicle.show(data.tree, state.only.within ?? "", state.tree, data.has_stacks);
      }
    } catch (error) {
      if (!isAbort(error)) fill(this.state, failed(error, () => void this.#ask(isMore)));
      return;
    }
    await this.showBuffer();
  }

  /**
   * @param {Moment} data
   * @param {boolean} isMore
   */
  #fillTable(data, isMore) {
    const { state } = this.model;
    const made = `${state.group} ${data.rows.some(({ count: many }) => many > 1)}`;
    const sort = state.sort || "-bytes";
    if (!this.#table || this.#made !== made || this.#table.sort !== sort) {
      this.#made = made;
      this.#table = new DataTable({
        label: state.group === "buffer" ? WORDING.live.buffers
          : worded(WORDING.live.by, { group: GROUPS[state.group].toLowerCase() }),
        columns: columnsOf(state.group, data.rows, this.model), sort,
        remote: true, height: "var(--live-height)", nothing: WORDING.live.nothing,
        onSort: (by) => this.change({ sort: by === "-bytes" ? "" : by }),
        onChoose: (row) => this.#choose(row),
        isChosen: (row) => state.group === "buffer" && row.record !== null
          && row.record === this.model.state.buffer,
        onPoint: (row) => this.model.point(row && pointedOf(row, state.group)),
        isPointed: (row) => isPointed(row, state.group, this.model.pointed),
      });
      fill(this.place, this.#table.element);
    }
    const isAll = this.#rows.length >= data.rows_total;
    this.#table.setRows(isAll && data.rows_bytes === data.bytes_in_use
      ? withShares(this.#rows) : this.#rows);
    if (!isMore) this.#table.element.scrollTop = 0;
    const what = state.group === "buffer" ? "row" : GROUPS[state.group].toLowerCase();
    this.total.textContent = worded(isAll ? WORDING.live.all : WORDING.live.first, { size: bytes(data.rows_bytes),
      shown: count(this.#rows.length), rows: counted(data.rows_total, what) });
    this.more.hidden = isAll;
  }

  /** @param {any} row */
  #choose(row) {
    const { state } = this.model;
    if (state.group === "buffer") {
      if (row.record === null) return;
      this.change({ buffer: row.record === state.buffer ? null : row.record });
      return;
    }
    const special = isSpecial(row.key);
    // The service takes an empty text for no filter at all.
    const key = state.group === "step" && !special ? exact(row.step_id) : row.key;
    if (!key) return;
    this.change({ only: { ...state.only, [special ? "op" : state.group]: key }, group: "buffer", sort: "" }, true);
    announce(`the buffers of ${row.key}`);
  }

  /** @param {string} path of a scope or an op; "" is everything */
  #within(path) {
    const { within, ...rest } = this.model.state.only;
    if ((within ?? "") === path) return;
    this.change({ only: path ? { ...rest, within: path } : rest }, true);
  }

  /** @param {Filter} name */
  #without(name) {
    const only = { ...this.model.state.only };
    delete only[name];
    this.change({ only });
    this.search.focus();
  }

  #type() {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => {
      this.#typing = undefined;
      this.change({ q: this.search.value.trim() });
    }, SEARCH_MS);
  }
}

/**
 * Rows that are all of a whole, with shares that add up as printed.
 * @param {any[]} rows
 */
function withShares(rows) {
  const texts = shares(rows.map(({ bytes: size }) => size));
  return rows.map((row, place) => ({ ...row, shareText: texts[place] }));
}

/** @param {number | null} id */
function exact(id) {
  return id !== null && Number.isSafeInteger(id) ? String(id) : "";
}
