/** The summary: what a profile's memory and time do, and what to fix first. */

import { commandOf } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { failed, loading, notices } from "../../core/states.js";
import { devicesPanel, factsPanel, memoryPanel, opsPanel, stepPanel } from "./facts.js";
import { fixesPanel } from "./fixes.js";
import { graphPanel } from "./graph.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} Summary what the tool `summary` says of one host
 * @property {{path: string, format: string, host: string, duration_ps: number}} profile
 * @property {{allocators: Allocator[]} | null} memory
 * @property {Need[]} programs what they need, where nothing is recorded of memory
 * @property {Times | null} time
 * @property {(import("../../core/finding.js").Finding & {about: "memory" | "time"})[]} first
 * @property {import("../../core/sentence.js").Sentence[]} notable what stands out besides
 * @property {number} further_findings
 * @property {import("../../core/api.js").Warning[]} warnings
 */
/**
 * @typedef {object} Allocator
 * @property {string} allocator
 * @property {number} peak_bytes
 * @property {number} peak_time_ps
 * @property {number | null} peak_step
 * @property {number | null} capacity_bytes
 * @property {number} untracked_allocations
 */
/**
 * @typedef {object} Need
 * @property {string | null} device
 * @property {number} peak_bytes
 * @property {string} program
 * @property {number} runs 0 where it is not known what ran
 */
/**
 * @typedef {object} Times
 * @property {number} steps how many there are, whatever the number of devices
 * @property {{count: number, mean_ps: number, min_ps: number, median_ps: number, p95_ps: number, max_ps: number} | null} times
 * @property {{name: string, count: number, median_ps: number, min_ps: number, max_ps: number}[]} times_by_name of steps of several names, those with most time first; `times` and `parts` are of the first
 * @property {string | null} found_by how the steps were found
 * @property {{part: string, per_step_ps: number, share: number}[]} parts
 * @property {Record<string, any>[]} devices rows of `device_time`
 * @property {string[]} to_record how to record what is missing
 * @property {{side: string, op: string, op_type: string | null, self_ps: number, share: number, is_input: boolean}[]} top_ops
 */

/** Warnings that a panel tells in its own words. */
const REPORTED = new Set(["no_memory_events", "no_steps"]);

/** Titles of the parts while they come. @type {Record<"memory" | "time" | "findings", [title: string, what: string]>} */
const COMING = {
  memory: ["Memory peaks", "Reading the memory"],
  time: [WORDING.summary.time, "Adding up the steps"],
  findings: ["Fix first", "Looking for what stands out"],
};

/** @typedef {keyof typeof COMING} Part */

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const page = h("div", { class: "stack" });
  context.main.append(h("h1", { class: "unseen" }, "Summary"), page);
  void show();
  return { update() {}, destroy() {} };

  async function show() {
    fill(page, loading("Reading the profile"));
    try {
      // What a profile is says at once whether it can be read at all.
      const { data } = await context.tool("summary", { part: "facts" });
      await new Parts(context, data, page).load();
    } catch (error) {
      if (!context.signal.aborted) fill(page, failed(error, () => void show()));
    }
  }
}

/** The parts of the summary, each shown as soon as its answer is there. */
class Parts {
  /** @type {Set<Part>} */
  #known = new Set();

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Pick<Summary, "profile">} facts
   * @param {HTMLElement} page
   */
  constructor(context, { profile }, page) {
    this.context = context;
    /** @type {Summary} */
    this.summary = { profile, memory: null, programs: [], time: null, first: [], notable: [], further_findings: 0,
      warnings: [] };
    this.menu = exportMenu({
      name: `${context.session}_summary`, json: async () => (await context.tool("summary")).data,
      command: () => commandOf(context, "summary"),
    });
    this.facts = h("div", {});
    this.notices = h("div", {});
    this.fixes = comingPanel("findings");
    this.ops = h("div", {});
    this.memory = comingPanel("memory");
    this.time = h("div", { class: "stack" }, comingPanel("time"));
    this.numbers = h("div", { class: "stack" }, this.time, this.memory);
    fill(page, this.facts, this.notices, h("div", { class: "summary-parts" },
      h("div", { class: "stack" }, this.fixes, this.ops), this.numbers));
    this.#drawFacts();
  }

  async load() {
    await Promise.all([this.#ask("memory"), this.#ask("time"), this.#ask("findings")]);
  }

  /** @param {Part} part */
  async #ask(part) {
    const { context } = this;
    try {
      const { data, notes } = await context.tool("summary", { part });
      if (context.signal.aborted) return;
      Object.assign(this.summary, data);
      this.#known.add(part);
      if (part === "findings") this.#drawNotices(notes);
      await this.#draw(part);
    } catch (error) {
      if (context.signal.aborted) return;
      fill(this.#place(part), failed(error, () => {
        fill(this.#place(part), loading(COMING[part][1]));
        void this.#ask(part);
      }));
    }
  }

  /** @param {Part} part */
  #place(part) {
    return part === "findings" ? this.fixes : this[part];
  }

  /** @param {Part} part */
  async #draw(part) {
    const { context, summary } = this;
    if (part === "memory") this.memory = replaced(this.memory, memoryPanel(context, summary));
    if (part === "time") {
      fill(this.time, stepPanel(context, summary), devicesPanel(summary));
      fill(this.ops, opsPanel(context, summary));
    }
    this.#drawFacts();
    // What there are numbers of comes first, then what the file does not say.
    if (this.#known.has("time") && this.#known.has("memory")) {
      if (!summary.time) this.numbers.prepend(this.memory);
      // What the file does not say of one depends on what it says of the other.
      this.memory = replaced(this.memory, memoryPanel(context, summary));
    }
    if (this.#known.size === Object.keys(COMING).length || summary.first.length) await this.#drawFixes();
  }

  async #drawFixes() {
    const { context, summary } = this;
    if (this.fixes.dataset["drawn"] || !this.#known.has("findings")) return;
    const { tools = [] } = await context.document?.catch(() => null) ?? {};
    const isGraph = !summary.memory && !summary.time && !summary.first.length
      && tools.includes("graph_scopes");
    if (context.signal.aborted) return;
    this.fixes = replaced(this.fixes, isGraph ? graphPanel(context) : fixesPanel(context, summary));
    this.fixes.dataset["drawn"] = "true";
  }

  #drawFacts() {
    const isOpen = this.menu.open;
    fill(this.facts, factsPanel(this.summary, this.menu));
    this.menu.open = isOpen;
  }

  /** @param {string[]} notes */
  #drawNotices(notes) {
    fill(this.notices, notices({ notes,
      warnings: this.summary.warnings.filter(({ kind }) => !REPORTED.has(kind)) }));
  }
}

/** @param {Part} part */
function comingPanel(part) {
  const [title, what] = COMING[part];
  return h("section", { class: "panel" }, h("h2", {}, title), loading(what));
}

/**
 * @param {HTMLElement} old
 * @param {HTMLElement} next
 */
function replaced(old, next) {
  old.replaceWith(next);
  return next;
}
