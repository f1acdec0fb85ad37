/** The job: all ranks of a session in one answer, as a map of ranks by steps, and what each waited for. */

import { fill, h } from "../../core/dom.js";
import { commandOf, toolCommand } from "../../core/command.js";
import { exportMenu } from "../../core/exporting.js";
import { failed, loading, notices } from "../../core/states.js";
import { WORDING } from "../../core/wording.js";
import { answerPanel, fixesPanel, partsPanel } from "./answer.js";
import { Arrivals } from "./arrivals.js";
import { HeatMap } from "./heat.js";
import { MEASURES, measuresOf } from "./measures.js";
import { memoryPanel } from "./memory.js";
import { groupingsOf, orderOf } from "./order.js";
import { collectivesPanel, ranksPanel } from "./tables.js";

/** @typedef {import("./measures.js").JobSteps} JobSteps */
/** @typedef {import("./answer.js").Job} Job */
/** @typedef {import("./heat.js").Cell} Cell */

/** A job of so many ranks is in order of its ranks at first, one of more shows the largest first. */
const FEW = 16;

/** Warnings that a panel says in its own words. */
const REPORTED = new Set(["no_memory_events", "no_steps"]);

/** @type {[string, string][]} */
const HELP = [
  ["← ↑ → ↓", "in the map of ranks by steps: from cell to cell; Page Up, Page Down: ten ranks"],
  ["Enter", "the collectives of that step on all ranks"],
  ["+ −", "higher and lower rows, as Ctrl and the wheel"],
];

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const page = h("div", { class: "stack" });
  context.main.append(h("h1", { class: "unseen" }, "Job"), page);
  /** @type {JobMap | null} */
  let map = null;
  /** @type {ReturnType<typeof memoryPanel> | null} */
  let memory = null;
  void show();
  return {
    help: HELP,
    /** @param {Record<string, string>} params */
    update(params) {
      map?.update(params);
    },
    destroy() {
      map?.destroy();
      memory?.destroy();
    },
  };

  async function show() {
    fill(page, loading("Reading all ranks"));
    try {
      const [job, steps] = await Promise.all([
        context.tool("job", { host: "" }), context.tool("job_steps", { host: "" }),
      ]);
      if (context.signal.aborted) return;
      draw(job, steps.data);
    } catch (error) {
      if (!context.signal.aborted) fill(page, failed(error, () => void show()));
    }
  }

  /**
   * @param {import("../../core/api.js").Answer<Job>} answer
   * @param {JobSteps} steps
   */
  function draw({ data, notes, warnings }, steps) {
    const menu = exportMenu({ name: `${context.session}_job`, json: () => data,
      command: () => commandOf(context, "summary", { host: null }) });
    const measures = measuresOf(steps);
    map = steps.steps.length && measures.size ? new JobMap(context, steps, measures, waitedFor(data)) : null;
    memory = data.memory ? memoryPanel(context) : null;
    const others = warnings.filter((one) => typeof one === "string" || !REPORTED.has(one.kind));
    fill(page, answerPanel(data, menu), notices({ notes, warnings: others }, "these profiles"), map?.element,
      h("div", { class: "summary-parts" }, fixesPanel(data, (finding) => linksOf(finding)), partsPanel(data)),
      memory?.element, data.time && collectivesPanel(context, (which) => map?.arrivals.only(which)),
      ranksPanel(context, data));
    map?.update(context.params);
  }

  /** @param {Job["first"][number]} finding */
  function linksOf({ evidence }) {
    const { host, steps } = evidence;
    if (typeof host !== "string" || !host) return [];
    const links = [{ text: "Its summary", href: context.linkTo(context.session, "summary", { host }) }];
    if (Array.isArray(steps) && steps.length) {
      links.push({ text: "Its timeline", href: context.linkTo(context.session, "timeline",
        { host, step: steps[Math.floor(steps.length / 2)], pick: "step" }) });
    }
    return links;
  }
}

/**
 * The places of the ranks that are a root, or on the machine whose links are.
 * @param {Job} data
 */
export function waitedFor({ time, ranks }) {
  const numbers = new Set((time?.roots ?? []).flatMap((root) => root.ranks ?? []));
  const titles = new Set((time?.roots ?? []).map(({ title }) => title));
  const machines = new Set((time?.roots ?? []).flatMap((root) => root.machines));
  return new Set(ranks.flatMap(({ rank, title, machine }, place) =>
    (rank !== null && numbers.has(rank)) || titles.has(title) || machines.has(machine) ? [place] : []));
}

/** The map with what chooses its measure and the order of its rows. */
class JobMap {
  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {JobSteps} data
   * @param {Map<import("./measures.js").Name, import("./measures.js").Measure>} measures
   * @param {ReadonlySet<number>} marked places of ranks that others wait for
   */
  constructor(context, data, measures, marked) {
    this.context = context;
    this.data = data;
    this.measures = measures;
    this.groupings = groupingsOf(data);
    this.map = new HeatMap(data, measures, marked, (cell) => this.#choose(cell));
    this.arrivals = new Arrivals(context, data, marked, () => this.#set({ rank: null, step: null }));
    this.kinds = MEASURES.filter(({ name }) => measures.has(name)).map((kind, place) =>
      h("button", { type: "button", title: kind.help, dataset: { measure: kind.name },
        onclick: () => this.#set({ measure: place ? kind.name : null }) }, kind.text));
    this.sort = this.#select("Order", [["rank", "by rank"], ["value", "most first"], ["host", "by host"]],
      (sort) => this.#set({ sort }));
    this.group = this.#select("Groups", [["", "no groups"],
      ...this.groupings.map(({ name, title }) => /** @type {[string, string]} */ ([name, title]))],
    (group) => this.#set({ group }));
    const zoom = (/** @type {string} */ text, /** @type {string} */ label, /** @type {number} */ factor) =>
      h("button", { type: "button", "aria-label": label, title: label,
        onclick: () => this.map.rows.zoom(factor) }, text);
    const missing = [!measures.has("peak") && `${WORDING.job.no_peaks} ${WORDING.records_memory_briefly}`,
      !measures.has("late") && WORDING.job.unpaired];
    this.panel = h("section", { class: "panel stack", "aria-labelledby": "ranks-by-steps" },
      h("div", { class: "row-of" }, h("h2", { id: "ranks-by-steps" }, "Ranks by steps"),
        h("span", { class: "quiet" }, this.map.says()), h("span", { class: "grow" }),
        exportMenu({ name: `${context.session}_ranks_by_steps`, json: () => data,
          picture: () => this.map.canvas, rows: () => this.map.table(),
          command: () => toolCommand(context, "job_steps", {}) })),
      h("div", { class: "row-of" },
        h("div", { class: "row-of tight", role: "group", "aria-label": "What the colors show" }, ...this.kinds),
        this.sort, this.groupings.length > 0 && this.group,
        h("div", { class: "row-of tight", role: "group", "aria-label": "Height of the rows" },
          zoom("−", "Lower rows", 0.8), zoom("+", "Higher rows", 1.25))),
      this.map.element,
      ...missing.map((text) => text && h("p", { class: "quiet" }, text)));
    this.element = h("div", { class: "stack" }, this.panel, this.arrivals.element);
    this.params = context.params;
  }

  /** @param {Record<string, string>} params */
  update(params) {
    this.params = params;
    const [first] = this.measures.values();
    const measure = this.measures.get(/** @type {any} */ (params["measure"] ?? "")) ?? first;
    if (!measure) return;
    const many = this.data.ranks.title.length;
    const given = params["sort"] ?? "";
    const sort = /** @type {import("./order.js").Sort} */ (
      ["rank", "value", "host"].includes(given) ? given : many > FEW ? "value" : "rank");
    const grouping = this.groupings.find(({ name }) => name === params["group"]) ?? null;
    for (const button of this.kinds) {
      button.setAttribute("aria-pressed", String(button.dataset["measure"] === measure.kind.name));
    }
    this.sort.value = sort;
    this.group.value = grouping?.name ?? "";
    const order = orderOf(this.data, sort, measure.means(), grouping), cell = this.#cell(params);
    this.map.show(measure, order, cell);
    this.arrivals.show(cell, order);
  }

  destroy() {
    this.map.destroy();
    this.arrivals.destroy();
  }

  /**
   * @param {Record<string, string>} params
   * @returns {Cell | null}
   */
  #cell({ rank, step }) {
    const place = this.data.ranks.title.indexOf(rank ?? ""), column = this.data.steps.indexOf(step ?? "");
    return place < 0 || column < 0 ? null : { rank: place, column };
  }

  /**
   * @param {Record<string, string | null>} changes
   * @param {boolean} [push]
   */
  #set(changes, push = false) {
    this.context.change(changes, push);
    const params = { ...this.params };
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) delete params[name];
      else params[name] = value;
    }
    this.update(params);
  }

  /** @param {Cell} cell */
  #choose({ rank, column }) {
    this.#set({ rank: this.data.ranks.title[rank] ?? "", step: this.data.steps[column] ?? "" }, true);
  }

  /**
   * @param {string} label
   * @param {[string, string][]} choices
   * @param {(choice: string) => void} set
   */
  #select(label, choices, set) {
    const element = h("select", { "aria-label": label },
      ...choices.map(([value, text]) => h("option", { value }, text)));
    element.addEventListener("change", () => set(element.value));
    return element;
  }
}
