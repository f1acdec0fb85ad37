/** What stands out about the time of the steps, each finding linked to where it can be seen. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { count, percent, time } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { stackOf } from "./ask.js";
import { WORDING } from "../../core/wording.js";

const MOST_ROWS = WORDING.limits.timeline_findings;
const MOMENT = /^(?:.*_)?(?:start|begin|from|at)_ps$/;
const LENGTH = /(?:before|duration|wall|length)_ps$/;
/** Evidence that names events: a search for them shows where they are. */
const NAMES = new Set(["name", "op", "kernel", "stage", "longest", "bottleneck", "event"]);

/** @typedef {Record<string, unknown>} Row */
/** @typedef {{kind: string, severity: string, title: string, suggestion: string, evidence: Row & {rows?: Row[]}}} Finding */
/**
 * @typedef {object} Links
 * @property {(name: string, device: string | null) => void} followStep
 * @property {() => boolean} hasSteps
 * @property {(from: number, to: number) => void} showRange
 * @property {(text: string) => void} search
 */

export class Findings {
  #requested = false;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Links} links
   * @param {Promise<void>} steps they are there: what finds them comes after the first drawing
   * @param {(title: string) => void} onTitle the title of their tab
   */
  constructor(context, links, steps, onTitle) {
    this.context = context;
    this.steps = steps;
    this.links = links;
    this.onTitle = onTitle;
    this.element = h("div", { class: "tl-fill tl-scroll stack" });
  }

  /** Ask for them, once. */
  async load() {
    if (this.#requested) return;
    this.#requested = true;
    if (stackOf(this.context)) {
      fill(this.element, empty(WORDING.timeline.of_one_host, WORDING.timeline.choose_host));
      this.onTitle("Findings");
      return;
    }
    fill(this.element, loading("Looking at the steps' time"));
    await this.steps;
    try {
      const { data } = await this.context.tool("time_findings", { steps: "false" });
      /** @type {Finding[]} */
      const result = data["hosts"].flatMap((/** @type {any} */ host) => host["findings"]);
      this.onTitle(result.length ? `Findings (${result.length})` : "Findings: none");
      fill(this.element, result.length ? result.map((finding) => this.#finding(finding))
        : empty("No finding", WORDING.judged.time));
    } catch (error) {
      this.#requested = false;
      if (!isAbort(error)) fill(this.element, failed(error, () => void this.load()));
    }
  }

  /** @param {Finding} finding */
  #finding({ kind, severity, title, suggestion, evidence }) {
    const { rows = [], ...facts } = evidence;
    return h("article", { class: `finding ${severity}` },
      h("h3", {}, h("span", { class: `badge ${severity}` }, severity), " ", title),
      h("p", {}, suggestion),
      h("details", { open: true },
        h("summary", {}, `Evidence (${kind.replaceAll("_", " ")})`),
        h("dl", { class: "facts" }, ...Object.entries(facts).map(([key, value]) =>
          h("div", {}, h("dt", {}, phrase(key)), h("dd", {}, this.#value(key, value, facts))))),
        rows.length > 0 && this.#rows(rows)));
  }

  /** @param {Row[]} rows */
  #rows(rows) {
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return h("div", { class: "tl-wide" }, h("table", { class: "tl-table" },
      h("thead", {}, h("tr", {}, ...keys.map((key) => h("th", { scope: "col" }, phrase(key))))),
      h("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) =>
        h("tr", {}, ...keys.map((key) => h("td", {}, this.#value(key, row[key], row)))))),
    ), rows.length > MOST_ROWS
      && h("p", { class: "quiet" }, `and ${count(rows.length - MOST_ROWS)} more`));
  }

  /**
   * A value, as a button where the timeline can show it.
   * @param {string} key
   * @param {unknown} value
   * @param {Row} row
   * @returns {Node | string}
   */
  #value(key, value, row) {
    if (value === null || value === undefined) return "–";
    if (Array.isArray(value)) {
      const links = value.map((one) => this.#value(key === "programs" ? "name" : key, one, row));
      return h("span", {}, ...links.flatMap((link, place) => place ? [", ", link] : [link]));
    }
    if (typeof value === "number") {
      if (MOMENT.test(key)) {
        const length = Object.entries(row).find(([name]) => LENGTH.test(name))?.[1];
        const end = value + (typeof length === "number" ? length : 0);
        return this.#link(time(value, 6), "shows it", () => this.links.showRange(value, end));
      }
      if (key.endsWith("_ps")) return time(value);
      if (key.endsWith("share")) return percent(value);
      return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
    }
    const text = String(value);
    const device = typeof row["device"] === "string" ? row["device"] : null;
    if (key === "step" && this.links.hasSteps()) {
      return this.#link(text, "follows the step", () => this.links.followStep(text, device));
    }
    if (NAMES.has(key) && text) {
      return this.#link(text, "searches for it", () => this.links.search(text));
    }
    return text;
  }

  /**
   * @param {string} text
   * @param {string} title
   * @param {() => void} onclick
   */
  #link(text, title, onclick) {
    return h("button", { type: "button", class: "tl-link", title, onclick }, text);
  }
}

/** @param {string} key */
function phrase(key) {
  return key.replace(/_ps$/, "").replaceAll("_", " ");
}
