/** Two sessions side by side: what changed in memory and in time, and what that is worth. */

import { isAbort, json, request, sessionPath } from "../../core/api.js";
import { changed } from "../../core/address.js";
import { comparedOf } from "../../core/compared.js";
import { diffCommand } from "../../core/command.js";
import { copyButton, copyText } from "../../core/copy.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { bytes, counted } from "../../core/format.js";
import { serverDocument } from "../../core/server.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { allocatorName, changeFact, time3 } from "./changes.js";
import { findingsPart } from "./findings.js";
import { MemoryPart } from "./memory.js";
import { MOST, Pickers } from "./pickers.js";
import { StepwiseData } from "./series.js";
import { Stepwise } from "./stepwise.js";
import { timePart } from "./time.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/finding.js").Link} Link */
/**
 * Of the two sessions, their hosts kept, and the command that compares them.
 * @typedef {{before: Link, after: Link, command: () => Promise<string>}} Links
 */
/** @typedef {import("./series.js").Measure} Measure */
/** @typedef {{coming: Promise<StepwiseData>, measure: Measure, onMeasure: (measure: Measure) => void}} Steps */

const COMPARED = ["new", "worse", "gone"];
const REQUESTED = ["first", "second", "with", "first_host", "second_host"];
const MEASURES = ["end", "low", "high"];

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const view = new CompareView(context);
  void view.start();
  return view;
}

class CompareView {
  #ends = new AbortController();
  #root = "";
  /** @type {Record<string, string>} */
  #params;
  /** @type {MemoryPart | null} */
  #memory = null;
  /** @type {Stepwise | null} */
  #time = null;
  #shown = "";
  #isReady = false;

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    this.#params = context.params;
    this.pickers = new Pickers((changes) => {
      this.context.change(changes, true);
      this.update(changed(this.#params, changes));
    });
    this.content = h("div", { class: "stack results" });
  }

  async start() {
    const { main, signal } = this.context;
    fill(main, h("h1", { class: "unseen" }, "Compare sessions"), this.pickers.element, this.content);
    fill(this.content, loading("Comparing"));
    try {
      const { roots } = await serverDocument();
      this.#root = this.context.root || (roots.length > 1 ? roots[0] ?? "" : "");
      if (signal.aborted) return;
      this.#isReady = true;
      this.pickers.root = this.#root;
      this.update(this.#params);
    } catch (error) {
      if (!signal.aborted) fill(this.content, failed(error, () => void this.start()));
    }
  }

  /** @param {Record<string, string>} params */
  update(params) {
    this.#params = params;
    this.pickers.setParams(params);
    // Which log directory is asked is not known before.
    if (!this.#isReady) return;
    const requested = REQUESTED.map((name) => params[name] ?? "").join("\n");
    if (requested === this.#shown) return;
    this.#shown = requested;
    void this.#compare();
  }

  destroy() {
    this.#ends.abort();
    this.#memory?.destroy();
    this.#time?.destroy();
    this.#memory = this.#time = null;
  }

  async #compare() {
    const { first = "", second = "" } = this.#params;
    this.destroy();
    this.#ends = new AbortController();
    const signal = AbortSignal.any([this.#ends.signal, this.context.signal]);
    if (!first || !second) {
      fill(this.content, empty("Choose two sessions", WORDING.compare.choose_two));
      return;
    }
    fill(this.content, loading("Comparing"));
    try {
      const query = await this.#query(signal);
      const steps = this.#steps(query, signal);
      const { data, notes } = await json("compare", { query, signal });
      const links = this.#links(query);
      const shown = this.#draw(data, links, query, steps);
      fill(this.content, notices({ notes, warnings: warningsOf(data) }, "these profiles"), ...shown);
    } catch (error) {
      if (isAbort(error)) return;
      this.#shown = "";
      fill(this.content, failed(error, () => void this.#compare()));
    }
  }

  /**
   * What the service is asked: of several hosts the first, where the address names none.
   * @param {AbortSignal} signal
   * @returns {Promise<Record<string, string>>}
   */
  async #query(signal) {
    const { first = "", second = "" } = this.#params;
    const [first_host = "", second_host = ""] = await Promise.all([["first_host", first],
      ["second_host", second]].map(async ([key = "", session = ""]) => {
      const { data } = await json(sessionPath(session), { query: { root: this.#root }, signal });
      this.pickers.setHosts(session, data.hosts);
      return this.#params[key] ?? (data.hosts.length > 1 ? data.hosts[0] : "");
    }));
    return { root: this.#root, first, second, first_host, second_host };
  }

  /**
   * All of them step by step, once for every chart; of others than the first two the first host.
   * @param {Record<string, string>} query
   * @param {AbortSignal} signal
   * @returns {Steps}
   */
  #steps({ first_host = "", second_host = "" }, signal) {
    const hosts = [first_host, second_host], chosen = this.#params["of"] ?? "";
    const coming = Promise.all(comparedOf(this.#params).slice(0, MOST).map(async (name, place) => {
      const known = hosts[place];
      if (known !== undefined) return { name, host: known };
      const { data } = await json(sessionPath(name), { query: { root: this.#root }, signal });
      return { name, host: data.hosts.length > 1 ? data.hosts[0] : "" };
    })).then((sessions) => StepwiseData.load(sessions, this.#root, signal));
    // Whoever shows it says why it does not come.
    coming.catch(() => undefined);
    return { coming, measure: /** @type {Measure} */ (MEASURES.includes(chosen) ? chosen : "end"),
      onMeasure: (measure) => this.context.change({ of: measure === "end" ? null : measure }) };
  }

  /**
   * @param {Record<string, string>} query
   * @returns {Links}
   */
  #links(query) {
    const { first = "", second = "", first_host = "", second_host = "" } = query;
    const link = (/** @type {string} */ session, /** @type {string} */ host) =>
      (/** @type {string} */ view, /** @type {Record<string, string | number>} */ params = {}) =>
        this.context.linkTo(session, view, { root: this.#root, host, ...params });
    return { before: link(first, first_host), after: link(second, second_host),
      command: () => diffCommand(this.context, query) };
  }

  /**
   * @param {any} data what `peakline diff --json` prints
   * @param {Links} links
   * @param {Record<string, string>} query
   * @param {Steps} steps
   */
  #draw(data, links, query, steps) {
    this.#memory = new MemoryPart(data, links, steps);
    this.#time = new Stepwise(steps.coming, { kind: "time", title: "Time of each step" });
    return [
      h("section", { class: "panel stack", "aria-label": "At a glance" },
        h("div", { class: "row-of" }, h("h2", { class: "grow" }, data.is_empty ? "Nothing changed" : "What changed"),
          this.#markdown(query), copyButton("Copy link", () => location.hash),
          exportMenu({ name: `comparison ${query["first"]} ${query["second"]}`, json: () => data,
            command: links.command })),
        ...(data.is_empty ? [] : data.sentences).map((/** @type {string} */ text) =>
          h("p", { class: "said" }, text)),
        glance(data)),
      findingsPart(data, links),
      this.#memory.element,
      timePart(data, links, this.#time.element),
    ];
  }

  /**
   * For a review or a ticket: the same as a text.
   * @param {Record<string, string>} query
   */
  #markdown(query) {
    return copyText("Copy as Markdown", async () => {
      const answer = await request("compare", { query: { ...query, format: "markdown" } });
      return answer.text();
    });
  }
}

/**
 * How many findings are so, of memory and of time.
 * @param {string} which
 * @param {any} findings
 * @param {any} both
 */
function counts(which, findings, both) {
  return findings[which].length + (both?.findings[which].length ?? 0);
}

/** @param {any} data */
function glance({ before, after, allocators, findings, time: both }) {
  const facts = [changeFact("Duration", before.duration_ps || null, after.duration_ps || null, time3,
    { neutral: true })];
  for (const one of allocators.slice(0, 4)) {
    facts.push(changeFact(`Peak of ${allocatorName(one.allocator)}`, one.before?.peak_bytes, one.after?.peak_bytes,
      bytes));
  }
  const times = [both?.before.times, both?.after.times];
  if (times[0] || times[1]) {
    facts.push(changeFact("Median step", times[0]?.median_ps, times[1]?.median_ps, time3,
      { neutral: both.is_chance }));
    if (both.is_chance) {
      facts.push(h("div", {}, h("dt", {}, "Step times"), h("dd", {}, WORDING.compare.chance)));
    }
  }
  const said = COMPARED.map((which) => ({ which, many: counts(which, findings, both) }))
    .filter(({ which, many }) => many || which !== "worse")
    .map(({ which, many }) => `${many} ${which}`);
  facts.push(h("div", {}, h("dt", {}, "Findings"), h("dd", {}, said.join(", "))));
  const more = allocators.length - 4;
  return h("div", { class: "stack" }, h("dl", { class: "facts" }, ...facts),
    more > 0 && h("p", { class: "quiet" }, `${counted(more, "further allocator")} below.`));
}

/**
 * @param {any} data
 * @returns {import("../../core/api.js").Warning[]}
 */
function warningsOf({ warnings }) {
  const of = (/** @type {string} */ side, /** @type {import("../../core/api.js").Warning[]} */ list) =>
    list.map((one) => ({ ...one, detail: `${side}: ${one.detail}` }));
  return [...of("Before", warnings.before), ...of("After", warnings.after)];
}
