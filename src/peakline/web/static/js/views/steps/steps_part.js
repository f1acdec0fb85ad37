/** Steps: how long each took and what its time went to; the slow ones; who waits for whom. */

import { announce, fill, h } from "../../core/dom.js";
import { toolCommand } from "../../core/command.js";
import { exportMenu } from "../../core/exporting.js";
import { count, counted, percent, sentence, time, worded } from "../../core/format.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { changed, number } from "../../core/address.js";
import { PARTS, partsBar, swatch } from "../../core/parts.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { StepChart } from "./chart.js";
import { HeatStrip } from "./heat.js";
import { nameOf } from "./facts.js";
import { FEW, MOST_WIDTH, StepSource } from "./source.js";
import { StepsTable } from "./steps_table.js";
import { Why } from "./why.js";
import { hostsPart, variationTable } from "./variation.js";
import { WORDING } from "../../core/wording.js";

/** @type {Record<string, string>} */
const howFound = WORDING.how_found;

/** @typedef {import("./facts.js").Step} Step */
/** @typedef {import("./facts.js").Variation} Variation */
/** @typedef {import("./index.js").Params} Params */

/** So many columns come first: of the overview, and of few steps one for each. */
const COLUMNS = FEW;

/** @type {import("./index.js").MountPart} */
export function mountSteps(facts, body, params, signal) {
  const { context } = facts;
  /** @type {Shown | null} */
  let shown = null;
  void load();
  return {
    update(changed) {
      params = changed;
      void shown?.update(params);
    },
    destroy: () => shown?.destroy(),
  };

  async function load() {
    fill(body, loading("Reading the steps"));
    try {
      const answer = await openSteps(facts, params["device"] ?? "");
      if (signal.aborted) return;
      if (!answer.data.steps) {
        fill(body, noSteps(context.link("steps", { part: "ops" })));
        void addFindings(facts, body, signal);
        return;
      }
      shown = new Shown(facts, answer.data, params["sort"] ?? "", signal);
      fill(body, notices(answer), shown.element);
      await shown.update(params);
      const session = await context.document?.catch(() => null);
      if (session && session.hosts.length > 1 && !signal.aborted) {
        body.append(hostsPart(facts, signal));
      }
      await addFindings(facts, shown.beside, signal);
    } catch (error) {
      if (!signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

/**
 * The steps of a device, by default of the one whose steps take longest; also where the address names
 * one that there is not.
 * @param {import("./facts.js").Facts} facts
 * @param {string} device
 */
async function openSteps(facts, device) {
  const query = { width: COLUMNS, limit: FEW };
  const answer = await facts.steps({ device: null, ...query });
  const isOther = device !== answer.data.device && answer.data.devices.includes(device);
  return isOther ? facts.steps({ device, ...query }) : answer;
}

class Shown {
  /** @type {Params} */
  #params = {};
  /** The chosen step, of a range the first. @type {Step | undefined} */
  #step;
  /** Counts choices: what an older one waited for is not shown. */
  #choice = 0;

  /**
   * @param {import("./facts.js").Facts} facts
   * @param {import("./facts.js").Envelope} about
   * @param {string} sort
   * @param {AbortSignal} signal
   */
  constructor(facts, about, sort, signal) {
    this.all = facts;
    this.context = facts.context;
    this.signal = signal;
    this.devices = about.devices;
    this.source = new StepSource(facts, about);
    this.chart = new StepChart({
      choose: (place) => void this.#chooseAt(place),
      chooseRange: (first, last) => void this.#chooseAt(first, last),
      zoom: (range) => {
        this.context.change({ steps: range });
        this.#showHeat();
      },
    });
    this.table = new StepsTable(this.context, {
      isChosen: (row) => row.step_id === this.#step?.step_id,
      choose: (row) => void this.#chooseAt(row.place),
    }, sort);
    this.picker = h("select", { id: "device" },
      ...this.devices.map((device) => h("option", { value: device }, device)));
    this.picker.addEventListener("change", () => {
      const changes = { device: this.picker.value, step: null, name: null, last: null, steps: null };
      this.context.change(changes, true);
      void this.update(changed(this.#params, changes));
    });
    this.why = new Why(this.context);
    this.heat = new HeatStrip(this.context, (step, changes) => void this.#chooseNamed(step, changes));
    this.facts = h("dl", { class: "facts" });
    this.how = h("p", { class: "quiet" });
    this.legend = h("ul", { class: "chart-legend", "aria-label": "What the colors mean" });
    this.byName = h("div", { class: "stack" });
    this.detail = h("section", { class: "panel", "aria-live": "polite" });
    this.beside = h("div", { class: "stack" });
    const { variation } = about;
    this.element = h("div", { class: "stack" },
      h("section", { class: "panel stack" },
        this.devices.length > 1 && h("div", { class: "row-of" },
          h("label", { for: "device" }, "Device"), this.picker,
          h("span", {}, sentence(about.straggler_text))),
        this.facts, this.how, this.byName, this.chart.element,
        h("div", { class: "row-of" }, h("div", { class: "grow" }, this.legend), exportMenu({
          name: `${this.context.session}_step_times`, picture: () => this.chart.canvas,
          rows: async () => (await this.source.columns(0, this.source.total, MOST_WIDTH)).rows,
          command: () => toolCommand(this.context, "step_envelope",
            { device: this.source.device, width: MOST_WIDTH, limit: 0 }) }))),
      this.why.element, this.heat.element,
      h("div", { class: "steps-parts" },
        h("div", { class: "stack" }, this.table.place,
          this.devices.length > 1 && variationTable("Devices", variation, "device",
            (row) => this.context.link("steps", { device: row.device }))),
        h("div", { class: "stack" }, this.detail, this.beside)));
    this.#show(this.source);
  }

  /** @param {Params} params */
  async update(params) {
    const choice = ++this.#choice;
    const { device } = this.source, wanted = params["device"] ?? "";
    if (this.devices.length > 1 && wanted !== device) {
      const { data } = await openSteps(this.all, wanted);
      if (this.signal.aborted || choice !== this.#choice) return;
      if (data.device !== device) this.#show(new StepSource(this.all, data));
    }
    this.#params = params;
    this.chart.show(params["steps"] ?? "");
    const wantedStep = number(params["step"]) ?? params["name"];
    const step = wantedStep === undefined ? undefined : await this.source.find(wantedStep);
    const id = number(params["last"]);
    const last = step && id !== null ? await this.source.find(id) : undefined;
    if (!this.signal.aborted && choice === this.#choice) await this.#choose(step, last);
  }

  destroy() {
    this.chart.destroy();
    this.why.destroy();
    this.heat.destroy();
  }

  /** @param {StepSource} source */
  #show(source) {
    this.source = source;
    this.picker.value = source.device;
    const variations = this.#variations();
    const longest = variations.reduce((most, one) => Math.max(most, one.max_ps), 0);
    this.chart.setSource(source, variations, longest);
    this.table.setSource(source);
    fill(this.facts, ...statistics(variations, source.total));
    fill(this.byName, ...(variations.length > 1
      ? [variationTable("Steps by name", variations, "name")] : []));
    fill(this.legend, ...legend(source, variations));
    const how = howFound[source.about.found_by ?? ""];
    this.how.hidden = !how;
    this.how.textContent = how ?? "";
  }

  /** Of the steps of each name, those with most time first. */
  #variations() {
    return this.source.about.variation.filter((one) => (one.device ?? "") === this.source.device);
  }

  /**
   * The reader chose a step, or a range.
   * @param {number} place
   * @param {number} [until]
   * @param {Record<string, string | null>} [about] what of it is to be explained
   */
  async #chooseAt(place, until = place, about = { part_of: null, work: null }) {
    const choice = ++this.#choice;
    this.chart.choose(place, until);
    const [step, last] = await Promise.all([this.source.at(place), this.source.at(until)]);
    if (!step || this.signal.aborted || choice !== this.#choice) return;
    /** @type {Record<string, string | number | null>} */
    const changes = { step: step.step_id, name: null, last: last && last !== step ? last.step_id : null,
      device: this.devices.length > 1 ? this.source.device : null, ...about };
    this.context.change(changes);
    this.#params = changed(this.#params, changes);
    announce(`${step.name}: ${time(step.wall_ps)}`);
    await this.#choose(step, last);
  }

  /**
   * @param {number} id
   * @param {Record<string, string | null>} about
   */
  async #chooseNamed(id, about) {
    const step = await this.source.find(id);
    if (step) await this.#chooseAt(step.place, step.place, about);
  }

  /**
   * Show a step, or none.
   * @param {Step | undefined} step
   * @param {Step | undefined} last of a range
   */
  async #choose(step, last) {
    const until = step && last && last.place > step.place ? last : undefined;
    this.#step = step;
    this.chart.choose(step?.place ?? -1, until?.place);
    this.table.choose(step);
    this.#showHeat();
    fill(this.detail, ...(step ? this.#stepDetail(step) : this.#meanDetail()));
    const beside = step ? await this.source.beside(step) : { previous: null, next: null };
    if (this.#step !== step || this.signal.aborted) return;
    this.why.show(step, until, { ...beside, shortest: this.source.about.shortest }, this.#params);
  }

  /** The steps that the chart shows, op by op. */
  #showHeat() {
    this.heat.show(this.source.device || null, this.chart.places, this.#step?.place ?? -1, this.#params);
  }

  /** @param {Step} step */
  #stepDetail(step) {
    const air = Math.round(step.wall_ps * 0.05);
    const params = { from: step.start_ps - air, to: step.end_ps + air };
    return [
      h("h2", {}, step.name || `Step ${step.step_id}`),
      h("p", {}, `${time(step.wall_ps)}, from ${time(step.start_ps, 6)} to ${time(step.end_ps, 6)}`,
        step.gap_before_ps > 0 && worded(WORDING.steps.gap, { gap: time(step.gap_before_ps) })),
      step.says && (step.is_warm_up
        ? h("p", { class: "quiet" }, worded(WORDING.steps.first, { says: step.says }))
        : h("p", {}, h("span", { class: "badge warning" }, "slow"), ` ${step.says}${this.#like(step)}.`)),
      step.is_cut_off && h("p", {}, h("span", { class: "badge" }, "cut off"),
        ` ${WORDING.steps.is_cut_off}`),
      partsBar(PARTS.map(({ name }) => ({ part: name, ps: /** @type {any} */ (step)[`${name}_ps`] }))
        .filter(({ ps }) => ps > 0), step.name || "The step"),
      h("p", { class: "row-of" },
        h("a", { href: this.context.link("timeline", { ...params, step: step.step_id, pick: "step" }) },
          "In the timeline"),
        h("a", { href: this.context.link("memory", params) }, "Its memory")),
    ];
  }

  /** Of which steps the median is, where there are several names. @param {Step} step */
  #like({ name }) {
    return this.#variations().length > 1 ? ` (of ${nameOf(name)})` : "";
  }

  #meanDetail() {
    const [most, other] = this.#variations(), { mean } = this.source.about;
    const title = other ? worded(WORDING.steps.mean_of, { name: most?.name || WORDING.steps.no_name })
      : WORDING.steps.mean;
    return [
      h("h2", {}, title),
      partsBar(Object.entries(mean?.parts ?? {}).map(([part, ps]) => ({ part, ps })), title),
      h("p", { class: "quiet" }, WORDING.steps.choose),
    ];
  }
}

/**
 * @param {import("./facts.js").Facts} facts
 * @param {HTMLElement} place
 * @param {AbortSignal} signal
 */
async function addFindings(facts, place, signal) {
  const panel = h("section", { class: "panel stack" }, h("h2", {}, "What stands out"));
  const waiting = loading("Looking for what stands out");
  panel.append(waiting);
  place.append(panel);
  try {
    const findings = await facts.findings();
    if (signal.aborted) return;
    waiting.replaceWith(...(findings.length
      ? findings.map((one) => findingPart(one, evidenceLinks(one,
        (view, params) => facts.context.link(view, params))))
      : [h("p", {}, WORDING.no_findings.time)]));
  } catch (error) {
    if (!signal.aborted) waiting.replaceWith(failed(error));
  }
}

/** @param {string} ops where the ops are */
function noSteps(ops) {
  return empty(WORDING.no_steps,
    WORDING.steps.mark, " ", h("a", { href: ops }, "Ops"));
}

/**
 * @param {Variation[]} variations
 * @param {number} total of the same device
 */
function statistics(variations, total) {
  const sum = (/** @type {(one: Variation) => number} */ of) =>
    variations.reduce((all, one) => all + of(one), 0);
  const steps = sum((one) => one.steps), slow = sum((one) => one.slow);
  const warmUp = sum((one) => one.warm_up);
  const [one] = variations.length === 1 ? variations : [];
  const left = total - steps;
  return [
    ["Steps", count(steps)],
    ...(one ? [["Median", time(one.median_ps)], ["95th percentile", time(one.p95_ps)],
      ["Shortest", time(one.min_ps)], ["Longest", time(one.max_ps)],
      ["Mean", `${time(one.mean_ps)} ± ${percent(one.coefficient)}`]] : []),
    ["Slow", slow ? counted(slow, "step") : "none"],
    ...(warmUp ? [["Warm up", counted(warmUp, "first step")]] : []),
    ...(left ? [[WORDING.steps.left_out, counted(left, "step")]] : []),
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/**
 * @param {StepSource} source
 * @param {Variation[]} variations
 */
function legend({ about, total, whole }, variations) {
  const mark = (/** @type {string} */ kind) => h("span", { class: kind, "aria-hidden": "true" }, "▼");
  return [
    ...PARTS.filter(({ name }) => about.parts.includes(name))
      .map((part) => h("li", {}, swatch(part), part.text)),
    variations.some(({ slow }) => slow > 0) && h("li", {}, mark("slow-mark"), WORDING.slow),
    variations.some(({ warm_up: many }) => many > 0)
      && h("li", {}, mark("first-mark"), WORDING.warm_up),
    !whole.isSingle && h("li", {}, worded(WORDING.steps.many, { steps: count(total) })),
    about.columns.is_cut_off.some(Boolean) && h("li", {}, WORDING.cut_off),
  ];
}
