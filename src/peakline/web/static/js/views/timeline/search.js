/** Finding events by their name: how many, where, the next and the previous. */

import { isAbort } from "../../core/api.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { count, counted, worded } from "../../core/format.js";
import { empty, failed } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { askTimeline } from "./ask.js";
import { HitsBand } from "./bands.js";
import { WORDING } from "../../core/wording.js";

const TYPING_MS = 250;
const MOVED_MS = 150;
const BINS_PER_PX = 0.5;
const MOST_NAMES = 1000;

/** @typedef {import("./lanes.js").Brief & {name: string}} Found */
/**
 * @typedef {object} SearchOptions
 * @property {import("./names.js").Names} names
 * @property {import("./bands.js").Shared} shared
 * @property {() => number | null} chosen the id of the chosen event
 * @property {(found: Found) => void} choose
 * @property {(text: string) => void} changed the reader searches for something else
 * @property {(title: string) => void} onTitle the title of the tab
 */

export class Search {
  text = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #moving;
  /** @type {AbortController | null} */
  #asking = null;
  /** One way after the other: each begins where the one before led. @type {Promise<void>} */
  #going = Promise.resolve();
  #seen = "";

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {SearchOptions} options
   */
  constructor(context, options) {
    this.context = context;
    this.options = options;
    this.band = new HitsBand(options.shared);
    this.band.element.hidden = true;
    this.field = h("input", {
      type: "search", placeholder: "Search events ( / )", "aria-label": "Search events by name",
      spellcheck: "false", autocomplete: "off", maxlength: 1000,
    });
    this.status = h("span", { class: "quiet tl-found", role: "status" });
    const step = (/** @type {"previous" | "next"} */ way, /** @type {string} */ sign) =>
      h("button", { type: "button", class: "plain", title: `${way} match`, "aria-label": `${way} match`,
        disabled: true, onclick: () => void this.go(way) }, sign);
    this.buttons = [step("previous", "‹"), step("next", "›")];
    this.bar = h("div", { class: "tl-search", role: "search" }, this.field, ...this.buttons, this.status);
    this.table = new DataTable({
      label: "Names that the search found", sort: "-count", height: "100%",
      columns: [{ key: "name", title: "Name" }, { key: "count", title: "Events", kind: "count" }],
      onChoose: (row) => void this.go("next", row.name),
    });
    this.element = h("div", { class: "tl-fill" }, empty("No search yet",
      WORDING.timeline.how_to_search));
    this.field.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.set(this.field.value, true), TYPING_MS);
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        if (this.field.value !== this.text) this.set(this.field.value, true);
        void this.go(event.shiftKey ? "previous" : "next");
      } else if (event.key === "Escape") {
        // The text stays, for n and N; Escape outside of the field ends the search.
        this.field.blur();
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
    context.signal.addEventListener("abort", () => this.#forget());
  }

  /**
   * Search for a text; "" ends the search.
   * @param {string} text
   * @param {boolean} byReader whether the address has to be told
   */
  set(text, byReader) {
    this.#forget();
    if (this.field.value !== text) this.field.value = text;
    if (text === this.text) return;
    this.text = text;
    this.#seen = "";
    if (byReader) this.options.changed(text);
    if (!text) {
      this.#asking?.abort();
      this.#none();
      return;
    }
    this.status.textContent = "searching …";
    void this.#ask();
  }

  /** The viewport moved: where in it are matches? */
  moved() {
    if (!this.text || this.#seen === this.#shown()) return;
    clearTimeout(this.#moving);
    this.#moving = setTimeout(() => void this.#ask(), MOVED_MS);
  }

  /**
   * Choose the match after or before the chosen event, or after the beginning of what is shown; at the
   * end it begins again.
   * @param {"previous" | "next"} way
   * @param {string} [name] only events of exactly this name
   */
  go(way, name) {
    this.#going = this.#going.then(() => this.#go(way, name));
    return this.#going;
  }

  /**
   * @param {"previous" | "next"} way
   * @param {string} [name]
   */
  async #go(way, name) {
    if (!this.text || this.context.signal.aborted) return;
    const { viewport } = this.options.shared;
    const event = this.options.chosen(), { text } = this;
    try {
      const data = await askTimeline(this.context, {
        view: "search", width: 1,
        search: name === undefined ? this.text : `^${escaped(name)}$`,
        pattern: name === undefined ? null : "true",
        ...(event === null ? { at_ps: viewport.from } : { event }),
      });
      // The reader chose something else, or searches for it.
      if (this.options.chosen() !== event || this.text !== text) return;
      const result = data[way], wrapped = way === "next" ? data["first"] : data["last"];
      if (!result && wrapped) announce(`${way === "next" ? "the first" : "the last"} match again`);
      if (result ?? wrapped) this.options.choose(result ?? wrapped);
      else announce("no match");
    } catch (error) {
      if (!isAbort(error)) this.#failed(error);
    }
  }

  async #ask() {
    this.#asking?.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    this.context.signal.addEventListener("abort", () => this.#asking?.abort(), { signal });
    const { viewport } = this.options.shared;
    const { from, to } = viewport;
    this.#seen = this.#shown();
    try {
      const data = await askTimeline(this.context, {
        view: "search", search: this.text, start_ps: from, end_ps: to,
        width: Math.max(100, Math.round(this.band.surface.width * BINS_PER_PX) || 500),
      }, signal);
      this.#show(data, from, to);
    } catch (error) {
      if (!isAbort(error)) this.#failed(error);
    }
  }

  #shown() {
    return `${this.options.shared.viewport.from} ${this.options.shared.viewport.to}`;
  }

  /**
   * @param {any} data
   * @param {number} from
   * @param {number} to
   */
  #show(data, from, to) {
    const { names } = this.options;
    const codes = new Set(data["name"]), text = this.text.toLowerCase();
    const isAll = data["names_total"] <= MOST_NAMES;
    names.highlight((code, name) => codes.has(code)
      || (!isAll && (name ?? "").toLowerCase().includes(text)));
    const total = data["total"];
    this.status.textContent = total
      ? `${counted(total, "event")}, ${counted(data["names_total"], "name")}` : "nothing found";
    for (const button of this.buttons) button.disabled = !total;
    this.options.onTitle(total ? `Matches (${count(total)})` : "Matches");
    const rows = Array.from(data["name"], (code, place) =>
      ({ name: names.get(/** @type {number} */ (code)), count: data["count"][place] }));
    this.table.setRows(rows);
    fill(this.element, rows.length ? withExport(this.table, {
      name: `${this.context.session}_matches`, command: () => toolCommand(this.context, "timeline", {
        view: "search", search: this.text }),
    }, h("span", { class: "quiet" }, isAll ? "" : worded(WORDING.timeline.most_names, { most: count(MOST_NAMES), names: count(data["names_total"]) })))
      : empty("Nothing found", worded(WORDING.timeline.no_match, { text: `“${this.text}”` })));
    this.band.setHits({ from, to, bins: data["bins"] });
  }

  /** @param {unknown} error */
  #failed(error) {
    this.status.textContent = error instanceof Error ? error.message : String(error);
    fill(this.element, failed(error, () => void this.#ask()));
  }

  #none() {
    this.status.textContent = "";
    for (const button of this.buttons) button.disabled = true;
    this.options.names.highlight(null);
    this.options.onTitle("Matches");
    fill(this.element, empty("No search yet", WORDING.timeline.how_to_search));
    this.band.setHits(null);
  }

  #forget() {
    clearTimeout(this.#typing);
    clearTimeout(this.#moving);
  }

  destroy() {
    this.#forget();
    this.#asking?.abort();
    this.band.destroy();
  }
}

/** A text as an expression that matches it alone. @param {string} text */
export function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
