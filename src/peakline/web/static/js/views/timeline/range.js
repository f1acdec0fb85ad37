/** A measured range, of all lines or of some: how long it is, what runs in it, and how it nests. */

import { isAbort } from "../../core/api.js";
import { commandOf } from "../../core/command.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { fill, h } from "../../core/dom.js";
import { count, counted, percent, time, worded } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { askTimeline } from "./ask.js";
import { formatRanges } from "./ranges.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} RangeOptions
 * @property {(text: string) => void} search
 * @property {() => void} zoom
 * @property {() => void} clear
 * @property {(event: number) => void} go choose an event and bring it into view
 * @property {(lines: number[] | null) => void} take the range of other lines
 * @property {() => number | null} chosenLine that of the chosen event
 */

export class Range {
  /** @type {number | null} */
  from = null;
  /** @type {number | null} */
  to = null;
  /** @type {number[] | null} null: all lines */
  lines = null;
  /** @type {AbortController | null} */
  #asking = null;
  /** @type {Record<string, any> | null} */
  #answer = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {RangeOptions} options
   */
  constructor(context, options) {
    this.context = context;
    this.options = options;
    this.table = new DataTable({
      label: "Events in the range by name", sort: "-self_ps", height: "100%",
      nothing: WORDING.range.nothing,
      columns: [
        { key: "name", title: "Name", width: "minmax(8rem, 2fr)" },
        { key: "count", title: "Events", kind: "count", width: "5rem" },
        { key: "self_ps", title: "Self time", kind: "time", width: "6.5rem",
          help: "within the range, without what the events directly inside cover" },
        { key: "total_ps", title: "Time in it", kind: "time", width: "6.5rem",
          help: "durations of the events, cut at the ends of the range; of nested events each counts" },
        { key: "longest", title: "Longest", width: "5rem", cell: (row) => h("button", { type: "button",
          class: "tl-link", tabindex: -1, title: `chooses the longest ${row.name}`, onclick: (/** @type {Event} */ event) => {
            event.stopPropagation();
            options.go(row.longest);
          } }, "show") },
      ],
      onChoose: (row) => options.search(row.name),
    });
    this.icicle = new Icicle({ label: "How the events in the range nest, by name", text: (value) => time(value),
      choose: () => undefined, height: "100%" });
    this.exports = exportMenu({
      name: `${context.session}-range`, rows: () => rowsOf(this.table), json: () => this.#answer,
      picture: () => this.icicle.picture(),
      command: () => commandOf(context, "tool timeline", { format: "json" }).then((command) =>
        `${command} -p view=area -p start_ps=${this.from} -p end_ps=${this.to}${
          this.lines ? ` -p lines=${formatRanges(this.lines)}` : ""}`),
    });
    this.element = h("div", { class: "tl-fill" });
    this.#none();
  }

  /**
   * Show a range while it is dragged; nothing is asked.
   * @param {number | null} from
   * @param {number | null} to
   * @param {number[] | null} lines
   */
  set(from, to, lines) {
    this.from = from === null ? null : Math.round(from);
    this.to = to === null ? null : Math.round(to);
    this.lines = from === null ? null : lines;
    if (this.from === null) this.#none();
  }

  /** Ask what is in it. */
  async load() {
    this.#asking?.abort();
    const ends = new AbortController();
    this.#asking = ends;
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    const { from, to, lines } = this;
    if (from === null || to === null || to <= from) return;
    const head = this.#head(from, to);
    fill(this.element, head, loading("Adding up what is in it"));
    try {
      const data = numbers(await askTimeline(this.context, { view: "area", start_ps: from, end_ps: to,
        lines: lines ? formatRanges(lines) : null }, ends.signal));
      this.#answer = data;
      this.table.setRows(data["name"].map((/** @type {string} */ name, /** @type {number} */ place) => ({
        name, count: data["count"][place], self_ps: data["self_ps"][place],
        total_ps: data["total_ps"][place], longest: data["longest"][place] })));
      fill(this.element, head, h("p", { class: "tl-says" }, says(data)),
        h("div", { class: "tl-area" }, this.table.element,
          h("div", { class: "tl-flame" }, this.icicle.element, hidden(data))));
      this.icicle.show(treeOf(data));
    } catch (error) {
      if (!isAbort(error)) fill(this.element, head, failed(error, () => void this.load()));
    }
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  #head(from, to) {
    const own = this.options.chosenLine();
    const { lines } = this;
    const isOwn = own !== null && lines?.length === 1 && lines[0] === own;
    const choice = h("select", { "aria-label": "Of which lines", onchange: () => {
      if (choice.value === "all") this.options.take(null);
      else if (choice.value === "own" && own !== null) this.options.take([own]);
    } }, h("option", { value: "all", selected: lines === null }, "of all lines"),
    own !== null && h("option", { value: "own", selected: isOwn }, "of the chosen event's line"),
    lines !== null && !isOwn && h("option", { value: "some", selected: true }, `of ${counted(lines.length, "line")}`));
    return h("div", { class: "tl-head" },
      h("h3", {}, `${time(to - from, 6)}`),
      h("span", { class: "quiet" }, `from ${time(from, 8)} to ${time(to, 8)}`),
      h("div", { class: "row-of" }, choice,
        h("button", { type: "button", onclick: this.options.zoom }, "Zoom to it"),
        h("button", { type: "button", onclick: this.options.clear }, "Clear"),
        h("a", { href: this.context.link("memory", { from, to }) }, "Memory of it"), this.exports));
  }

  #none() {
    this.#asking?.abort();
    fill(this.element, empty(WORDING.range.no_range, WORDING.range.how_to_mark));
  }

  destroy() {
    this.icicle.destroy();
  }
}

/** Columns of 64 bits as numbers. @param {Record<string, any>} data */
function numbers(data) {
  return Object.fromEntries(Object.entries(data).map(([key, value]) =>
    [key, Array.isArray(value) || typeof value !== "object" ? value : Array.from(value, Number)]));
}

/** What the numbers say, in a sentence. @param {Record<string, any>} data */
function says(data) {
  const text = WORDING.range;
  if (!data["events"]) return text.none;
  const whole = data["self_total_ps"], most = data["self_ps"][0] ?? 0, listed = data["name"].length;
  const names = worded(data["names_total"] > listed ? text.listed : "{names}",
    { names: counted(data["names_total"], "name"), listed: count(listed) });
  return worded(whole && most ? text.events_most : text.events, { names, events: counted(data["events"], "event"),
    lines: counted(data["lines"], "line"), self: time(whole), share: percent(most / (whole || 1)),
    name: data["name"][0] || "(no name)" });
}

/** @param {Record<string, any>} data */
function hidden(data) {
  return data["frames_hidden"] > 0
    && h("p", { class: "quiet" }, worded(WORDING.range.hidden, { events: counted(data["frames_hidden"], "event") }));
}

/**
 * The flame graph's columns.
 * @param {Record<string, any>} data
 * @returns {import("../../core/icicle.js").Tree}
 */
function treeOf(data) {
  /** @type {number[]} */
  const parents = data["frame_parent"];
  const values = /** @type {number[]} */ (data["frame_total_ps"]);
  const whole = parents.reduce((sum, parent, place) => sum + (parent < 0 ? values[place] ?? 0 : 0), 0);
  const notes = parents.map((_, place) => `${counted(data["frame_count"][place], "event")}, self ${
    time(data["frame_self_ps"][place])}`);
  return {
    id: ["all", ...parents.map((_, place) => `f${place}`)],
    parent: ["", ...parents.map((parent) => (parent < 0 ? "all" : `f${parent}`))],
    label: ["all", ...data["frame_name"].map((/** @type {string} */ name) => name || "(no name)")],
    value: [whole, ...values], note: [WORDING.range.outermost, ...notes],
  };
}
