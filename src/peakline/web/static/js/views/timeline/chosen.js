/** The chosen event: all that is known of it, and the ways from it to others. */

import { isAbort } from "../../core/api.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { bytes, count, counted, percent, time, worded } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { activityOf } from "./activities.js";
import { askTimeline, stackOf } from "./ask.js";
import { onHost } from "./stack.js";
import { escaped } from "./search.js";
import { WORDING } from "../../core/wording.js";

/** Digits that show every picosecond. */
const EXACT = 16;

/** @typedef {import("./lanes.js").Brief} Brief */
/** @typedef {Brief & {name: string}} Named */
/**
 * @typedef {Named & {end_ps: number, own_ps: number, activity: string, op: string | null,
 *   bytes: number | null, shape: string | null, plane: string, line_name: string,
 *   step: {step_id: number, name: string} | null, parents_total: number, parents: Named[],
 *   children: {count: number, total_ps: number, names: {name: string, count: number, total_ps: number}[]},
 *   previous: Named | null, next: Named | null, stats: {name: string, value: string | null}[]}} Details
 */
/**
 * @typedef {object} ChosenOptions
 * @property {(brief: Brief | null) => void} placed where the event is, as soon as that is known
 * @property {(event: Named) => void} go choose another event and bring it into view
 * @property {(brief: Brief) => void} zoom
 * @property {(brief: Brief) => void} mark
 * @property {(step: {step_id: number, name: string}) => void} follow
 * @property {HTMLElement} arrows what it hands on, and to it
 * @property {(id: number | null) => void} chose
 */

export class Chosen {
  /** @type {number | null} */
  id = null;
  /** @type {Details | null} */
  details = null;
  /** @type {AbortController | null} */
  #asking = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {ChosenOptions} options
   */
  constructor(context, options) {
    this.context = context;
    this.options = options;
    this.element = h("div", { class: "tl-fill tl-scroll" });
    this.#none();
  }

  /**
   * @param {number | null} id
   * @param {Named | null} [glimpse] what the picture tells of it, to be shown until the rest comes
   * @returns {Promise<Details | null>} null where there is none, or another was chosen meanwhile
   */
  async choose(id, glimpse = null) {
    this.#asking?.abort();
    this.id = id;
    this.details = null;
    this.options.chose(id);
    if (id === null) {
      this.#none();
      return null;
    }
    if (glimpse) {
      fill(this.element, h("div", { class: "tl-head" }, h("h3", {}, glimpse.name || "(no name)")),
        h("dl", { class: "tl-facts" }, h("dt", {}, "Duration"), h("dd", {}, time(glimpse.duration_ps, EXACT)),
          h("dt", {}, "Begins"), h("dd", {}, time(glimpse.start_ps, EXACT))),
        loading("Reading the rest"));
    }
    const details = await this.#ask(id, false, glimpse === null);
    if (details) {
      announce(`${details.name}, ${time(details.duration_ps)}, on ${details.line_name}`);
      this.options.placed(details);
    }
    return details;
  }

  /**
   * @param {number} id
   * @param {boolean} withStep
   * @param {boolean} [isBlank] nothing is shown of it yet
   * @returns {Promise<Details | null>}
   */
  async #ask(id, withStep, isBlank = false) {
    const ends = new AbortController();
    this.#asking = ends;
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    if (isBlank) fill(this.element, loading("Reading the event"));
    try {
      const data = await askTimeline(this.context,
        { view: "event", event: id, with_step: String(withStep) }, ends.signal);
      if (this.id !== id) return null;
      this.details = /** @type {Details} */ (data["details"]);
      this.#show(this.details, withStep);
      return this.details;
    } catch (error) {
      if (!isAbort(error) && this.id === id) {
        fill(this.element, failed(error, () => void this.choose(id)));
      }
      return null;
    }
  }

  /** Say why no event is chosen. @param {string} reason */
  say(reason) {
    this.#asking?.abort();
    this.id = this.details = null;
    this.options.chose(null);
    fill(this.element, empty(WORDING.event.none_chosen, reason));
    announce(reason);
  }

  #none() {
    fill(this.element, empty(WORDING.event.none_chosen, WORDING.event.how_to_choose));
  }

  /**
   * @param {Details} event
   * @param {boolean} withStep
   */
  #show(event, withStep) {
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, title = "") =>
      h("button", { type: "button", onclick, title: title || null }, text);
    const of = (/** @type {Details} */ one) => one.duration_ps > 0
      ? ` (${percent(one.own_ps / one.duration_ps)})` : "";
    const end = event.end_ps;
    fill(this.element,
      h("div", { class: "tl-head" }, h("h3", {}, event.name || "(no name)"),
        h("div", { class: "row-of" },
          button("Zoom to it", () => this.options.zoom(event), "f or Enter"),
          button("Mark its range", () => this.options.mark(event), "m"),
          h("a", { href: this.#memory(event) }, "Memory at its start"),
          button("Copy", () => void this.#copy(event)),
          exportMenu({ name: `${this.context.session}-event`, json: () => event, rows: () => {
            const { names } = event.children;
            return { columns: ["name", "count", "total_ps"],
              rows: names.map((one) => [one.name, one.count, one.total_ps]) };
          },
          // The numbers of several hosts stacked are of this page alone.
          ...(stackOf(this.context) ? {} : { command: () =>
            toolCommand(this.context, "timeline", { view: "event", event: event.event }) }) }))),
      h("div", { class: "tl-columns" },
        h("section", { "aria-label": "Event" },
          h("dl", { class: "tl-facts" }, ...Object.entries({
            Duration: time(event.duration_ps, EXACT), "Self time": time(event.own_ps, EXACT) + of(event),
            "What goes on": activityOf(event.activity).text,
            ...(event.op && event.op !== event.name ? { Op: event.op } : {}),
            ...(event.bytes === null ? {} : { Bytes: `${bytes(event.bytes)} (${count(event.bytes)})` }),
            ...(event.shape ? { Shape: event.shape } : {}),
            Begins: time(event.start_ps, EXACT), Ends: time(end, EXACT),
            Line: `${event.line_name || "(no name)"}, row ${event.row}`, Plane: event.plane,
            Event: String(event.event),
          }).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
          h("dt", {}, "Step"), h("dd", {}, this.#step(event, withStep)))),
        this.options.arrows,
        h("section", { "aria-label": "Around it" },
          h("h4", {}, WORDING.event.neighbours),
          h("ul", { class: "tl-list" },
            this.#neighbour("previous", event.previous, event), this.#neighbour("next", event.next, event)),
          h("h4", {}, event.parents_total ? `In (${count(event.parents_total)})` : WORDING.event.in_none),
          h("ul", { class: "tl-list" }, ...event.parents.map((parent) => h("li", {}, this.#link(parent),
            h("span", { class: "quiet" }, ` ${time(parent.duration_ps)}`))))),
        h("section", { "aria-label": "Arguments" },
          h("h4", {}, event.stats.length ? counted(event.stats.length, "argument") : "No arguments"),
          h("dl", { class: "tl-facts tl-stats" }, ...event.stats.flatMap(({ name, value }) =>
            [h("dt", {}, name), h("dd", { class: "mono" }, value ?? "–")]))),
        h("section", { "aria-label": "Children" }, this.#children(event))));
  }

  /** Memory at its start, of its own host by that host's clock. @param {Details} event */
  #memory(event) {
    const part = stackOf(this.context)?.of(event.event);
    const at = part ? onHost(part.clock, event.start_ps) : event.start_ps, half = Math.round(event.duration_ps / 2);
    return this.context.link("memory", { at, from: at - half, to: at + event.duration_ps + half,
      ...(part ? { host: part.host } : {}) });
  }

  /** @param {Details} event */
  #children(event) {
    const { children } = event;
    if (!children.count) return h("h4", {}, WORDING.event.nothing);
    const more = children.count - children.names.reduce((sum, one) => sum + one.count, 0);
    return h("div", {},
      h("h4", {}, worded(WORDING.event.children,
        { events: counted(children.count, "event"), time: time(children.total_ps) })),
      h("table", { class: "tl-table" },
        h("thead", {}, h("tr", {}, ...["Name", "Events", "Time", "Share"].map((title) =>
          h("th", { scope: "col" }, title)))),
        h("tbody", {}, ...children.names.map((child) => h("tr", {},
          h("td", {}, h("button", { type: "button", class: "tl-link", title: "shows the first",
            onclick: () => void this.firstChild(child.name) }, child.name || "(no name)")),
          h("td", {}, count(child.count)), h("td", {}, time(child.total_ps)),
          h("td", {}, percent(event.duration_ps ? child.total_ps / event.duration_ps : 0)))))),
      more > 0 && h("p", { class: "quiet" }, worded(WORDING.event.others, { events: counted(more, "event") })));
  }

  /**
   * @param {Details} event
   * @param {boolean} withStep
   * @returns {Node | string}
   */
  #step(event, withStep) {
    const { step } = event;
    if (step) {
      return h("button", { type: "button", class: "tl-link", title: "follows the step",
        onclick: () => this.options.follow(step) }, step.name);
    }
    return withStep ? "none" : h("button", { type: "button", class: "tl-link",
      onclick: () => void this.#ask(event.event, true) }, "Find it");
  }

  /**
   * @param {string} way
   * @param {Named | null} other
   * @param {Details} event
   */
  #neighbour(way, other, event) {
    if (!other) return h("li", { class: "quiet" }, `${way}: none`);
    const apart = way === "next" ? other.start_ps - event.start_ps - event.duration_ps
      : event.start_ps - other.start_ps - other.duration_ps;
    return h("li", {}, `${way}: `, this.#link(other),
      h("span", { class: "quiet" }, ` ${time(other.duration_ps)}, ${time(Math.max(0, apart))} apart`));
  }

  /** @param {Named} other */
  #link(other) {
    return h("button", { type: "button", class: "tl-link", onclick: () => this.options.go(other) },
      other.name || "(no name)");
  }

  /**
   * Go to the first event in the chosen one, or the first of a name.
   * @param {string} [name]
   */
  async firstChild(name) {
    const { details } = this;
    if (!details || !details.children.count) return;
    // Of any name: what begins next on the line is what lies in it.
    const search = name === undefined ? "^" : `^${escaped(name)}$`;
    const data = await askTimeline(this.context, {
      view: "search", width: 1, search, pattern: "true",
      lines: details.line, event: details.event,
    }).catch((error) => {
      if (!isAbort(error)) announce(`it cannot be found: ${error}`);
      return /** @type {Record<string, any>} */ ({});
    });
    const result = data["next"];
    // Unless something else was chosen meanwhile.
    if (result && this.details === details && result.start_ps <= details.end_ps) this.options.go(result);
  }

  /** @param {Details} event */
  async #copy(event) {
    try {
      await navigator.clipboard.writeText(JSON.stringify(event, null, 1));
      announce("copied");
    } catch {
      announce("the browser does not let this page copy");
    }
  }
}
