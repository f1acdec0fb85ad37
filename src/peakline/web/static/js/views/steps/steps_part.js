/** Steps: how long each took and what its time went to; the slow ones; who waits for whom. */

import { announce, fill, h } from "../../core/dom.js";
import { count, counted, percent, time } from "../../core/format.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { changed, number } from "../../core/address.js";
import { partOf, PARTS, partsBar, swatch } from "../../core/parts.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { stragglerText } from "../../core/straggler.js";
import { DataTable } from "../../core/table.js";
import { StepChart } from "./chart.js";
import { HeatStrip } from "./heat.js";
import { HOW_FOUND, HOW_TO_MARK, nameOf } from "./facts.js";
import { Why } from "./why.js";
import { hostsPart, variationTable } from "./variation.js";

/** @typedef {import("./facts.js").Step} Step */
/** @typedef {import("./facts.js").Breakdown} Breakdown */
/** @typedef {import("./facts.js").Variation} Variation */
/** @typedef {import("./index.js").Params} Params */

/** @type {import("./index.js").MountPart} */
export function mountSteps(facts, body, params, signal) {
  const { context } = facts;
  /** @type {Shown | null} */
  let shown = null;
  void load();
  return {
    update(changed) {
      params = changed;
      shown?.update(params);
    },
    destroy: () => shown?.destroy(),
  };

  async function load() {
    fill(body, loading("Reading the steps"));
    try {
      const answer = await facts.breakdown();
      if (signal.aborted) return;
      if (!answer.data.steps.length) {
        fill(body, noSteps(context.link("steps", { part: "ops" })));
        void addFindings(facts, body, signal);
        return;
      }
      shown = new Shown(facts, answer.data, params["sort"] ?? "");
      fill(body, notices(answer), shown.element);
      shown.update(params);
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

/** Of so many steps several share a pixel. */
const MANY = 1000;

class Shown {
  #device = "";
  /** @type {Step[]} */
  #rows = [];
  #chosen = -1;
  /** @type {Params} */
  #params = {};

  /**
   * @param {import("./facts.js").Facts} facts
   * @param {Breakdown} breakdown
   * @param {string} sort
   */
  constructor(facts, breakdown, sort) {
    this.context = facts.context;
    this.breakdown = breakdown;
    this.devices = [...new Set(breakdown.steps.map((step) => step.device ?? ""))];
    this.chart = new StepChart({
      choose: (step) => this.#choose(step.step_id, true),
      chooseRange: (first, last) => this.#choose(first.step_id, true, last.step_id),
      zoom: (range) => {
        this.context.change({ steps: range });
        this.#showHeat();
      },
    });
    this.table = new DataTable({
      label: "Steps", columns: columns(breakdown.steps), height: "26rem",
      isChosen: (row) => row.step_id === this.#rows[this.#chosen]?.step_id,
      onChoose: (row) => this.#choose(row.step_id, true),
      sort, onSort: (sorted) => this.context.change({ sort: sorted }),
    });
    this.picker = h("select", { id: "device" },
      ...this.devices.map((device) => h("option", { value: device }, device)));
    this.picker.addEventListener("change", () => {
      this.context.change({ device: this.picker.value, step: null, name: null, steps: null }, true);
      this.#show(this.picker.value);
      this.#choose(-1, false);
    });
    this.why = new Why(this.context);
    this.heat = new HeatStrip(this.context, (step, changes) => this.#choose(step, true, step, changes));
    this.facts = h("dl", { class: "facts" });
    this.byName = h("div", { class: "stack" });
    this.detail = h("section", { class: "panel", "aria-live": "polite" });
    this.beside = h("div", { class: "stack" });
    this.element = h("div", { class: "stack" },
      h("section", { class: "panel stack" },
        this.devices.length > 1 && h("div", { class: "row-of" },
          h("label", { for: "device" }, "Device"), this.picker,
          h("span", {}, stragglerText(breakdown.straggler, this.devices.length, "device"))),
        this.facts, howFound(breakdown.steps), this.byName, this.chart.element,
        legend(breakdown.steps, breakdown.variation.some((one) => one.slow.length > 0))),
      this.why.element, this.heat.element,
      h("div", { class: "steps-parts" },
        h("div", { class: "stack" }, this.table.element,
          this.devices.length > 1 && variationTable("Devices", breakdown.variation, "device",
            (row) => this.context.link("steps", { device: row.device }))),
        h("div", { class: "stack" }, this.detail, this.beside)));
  }

  /** @param {Params} params */
  update(params) {
    const device = params["device"] ?? this.#longest();
    if (device !== this.#device || !this.#rows.length) this.#show(device);
    this.#params = params;
    this.chart.show(params["steps"] ?? "");
    this.#choose(this.#asked(params), false, number(params["last"]) ?? undefined);
  }

  destroy() {
    this.chart.destroy();
    this.why.destroy();
    this.heat.destroy();
  }

  /** The id of the step that the address asks for, -1 for none. @param {Params} params */
  #asked(params) {
    const id = number(params["step"]);
    if (id !== null) return id;
    const name = params["name"];
    return name ? this.#rows.find((row) => row.name === name)?.step_id ?? -1 : -1;
  }

  /** The device whose steps took longest in all. */
  #longest() {
    /** @type {Record<string, number>} */
    const sums = {};
    for (const { device, wall_ps } of this.breakdown.steps) {
      sums[device ?? ""] = (sums[device ?? ""] ?? 0) + wall_ps;
    }
    return Object.entries(sums).sort(([, one], [, other]) => other - one)[0]?.[0] ?? "";
  }

  /** @param {string} device */
  #show(device) {
    this.#device = this.devices.includes(device) ? device : this.#longest();
    this.picker.value = this.#device;
    this.#rows = this.breakdown.steps.filter((step) => (step.device ?? "") === this.#device)
      .sort((one, other) => one.start_ps - other.start_ps);
    const variations = this.#variations();
    this.chart.setRows(this.#rows, new Set(this.#slow().map((step) => step.step_id)), variations);
    this.table.setRows(this.#rows);
    fill(this.facts, ...statistics(variations, this.#rows));
    fill(this.byName, ...(variations.length > 1
      ? [variationTable("Steps by name", variations, "name")] : []));
  }

  /** Of the steps of each name, those with most time first. */
  #variations() {
    return this.breakdown.variation.filter((one) => (one.device ?? "") === this.#device);
  }

  #slow() {
    return this.#variations().flatMap((one) => one.slow);
  }

  /**
   * @param {number} id of a step, -1 for none
   * @param {boolean} isReader whether the reader chose it just now
   * @param {number} [lastId] of the last step of a range
   * @param {Record<string, string | null>} [about] what of it is to be explained
   */
  #choose(id, isReader, lastId = id, about = { part_of: null, work: null }) {
    this.#chosen = this.#rows.findIndex((row) => row.step_id === id);
    const step = this.#rows[this.#chosen];
    const until = step ? this.#rows.findIndex((row) => row.step_id === lastId) : -1;
    const last = until >= this.#chosen ? this.#rows[until] : undefined;
    this.chart.choose(this.#chosen, Math.max(until, this.#chosen));
    if (isReader && step) {
      /** @type {Record<string, string | number | null>} */
      const changes = { step: id, name: null, last: last && last !== step ? last.step_id : null,
        device: this.devices.length > 1 ? this.#device : null, ...about };
      this.context.change(changes);
      this.#params = changed(this.#params, changes);
      announce(`${step.name}: ${time(step.wall_ps)}`);
    }
    const place = this.table.rows.findIndex((row) => row.step_id === id);
    if (place >= 0) this.table.reveal(place);
    else this.table.refresh();
    this.#showHeat();
    this.why.show(step, last, this.#rows, this.#params);
    fill(this.detail, ...(step ? this.#stepDetail(step) : this.#meanDetail()));
  }

  /** The steps that the chart shows, op by op. */
  #showHeat() {
    this.heat.show(this.#device || null, this.#rows, this.chart.places,
      this.#rows[this.#chosen]?.step_id ?? -1, this.#params);
  }

  /** @param {Step} step */
  #stepDetail(step) {
    const slow = this.#slow().find((one) => one.step_id === step.step_id);
    const like = this.#variations().length > 1 ? ` of ${nameOf(step.name)}` : "";
    const air = Math.round(step.wall_ps * 0.05);
    const params = { from: step.start_ps - air, to: step.end_ps + air };
    return [
      h("h2", {}, step.name || `Step ${step.step_id}`),
      h("p", {}, `${time(step.wall_ps)}, from ${time(step.start_ps, 6)} to ${time(step.end_ps, 6)}`,
        step.gap_before_ps > 0 && `; ${time(step.gap_before_ps)} after the step before`),
      slow && h("p", {}, h("span", { class: "badge warning" }, "slow"),
        ` ${time(slow.beyond_ps)} longer than the median${like}, ${time(slow.part_beyond_ps)} of it `
        + `${partOf(slow.part).text}.`),
      step.is_cut_off && h("p", {}, h("span", { class: "badge" }, "cut off"),
        " The record ends in the middle of it: it counts in no median and no mean."),
      partsBar(partsOf([step]), step.name || "The step"),
      h("p", { class: "row-of" },
        h("a", { href: this.context.link("timeline", { ...params, step: step.step_id, pick: "step" }) },
          "In the timeline"),
        h("a", { href: this.context.link("memory", params) }, "Its memory")),
    ];
  }

  #meanDetail() {
    const [most, other] = this.#variations();
    const rows = whole(this.#rows).filter((row) => nameOf(row.name) === most?.name);
    const title = other ? `The mean step of ${most?.name || "those without a name"}`
      : "The mean step";
    return [
      h("h2", {}, title),
      partsBar(partsOf(rows), title),
      h("p", { class: "quiet" }, "Choose a step in the chart or in the table to see it alone."),
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
      : [h("p", {}, "Nothing about time.")]));
  } catch (error) {
    if (!signal.aborted) waiting.replaceWith(failed(error));
  }
}

/** @param {string} ops where the ops are */
function noSteps(ops) {
  return empty("No steps are marked in this profile",
    `${HOW_TO_MARK}, and record again. Meanwhile: `,
    h("a", { href: ops }, "the ops"), ".");
}

/**
 * @param {Variation[]} variations
 * @param {Step[]} rows those of the same device
 */
function statistics(variations, rows) {
  const steps = variations.reduce((sum, one) => sum + one.steps, 0);
  const slow = variations.reduce((sum, one) => sum + one.slow.length, 0);
  const [one] = variations.length === 1 ? variations : [];
  const left = rows.length - steps;
  return [
    ["Steps", count(steps)],
    ...(one ? [["Median", time(one.median_ps)], ["95th percentile", time(one.p95_ps)],
      ["Shortest", time(one.min_ps)], ["Longest", time(one.max_ps)],
      ["Mean", `${time(one.mean_ps)} ± ${percent(one.coefficient)}`]] : []),
    ["Slow", slow ? counted(slow, "step") : "none"],
    ...(left ? [["Cut off, and left out", counted(left, "step")]] : []),
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

/**
 * Those that the record holds whole; all, where it holds none so.
 * @param {Step[]} rows
 */
function whole(rows) {
  const found = rows.filter((row) => !row.is_cut_off);
  return found.length ? found : rows;
}

/** @param {Step[]} steps */
function howFound(steps) {
  const how = HOW_FOUND[steps[0]?.found_by ?? ""];
  return how && h("p", { class: "quiet" }, how);
}

/**
 * @param {Step[]} steps
 * @param {boolean} hasSlow
 */
function legend(steps, hasSlow) {
  return h("ul", { class: "chart-legend", "aria-label": "What the colors mean" },
    ...present(steps).map((part) => h("li", {}, swatch(part), part.text)),
    hasSlow && h("li", {}, h("span", { class: "slow-mark", "aria-hidden": "true" }, "▼"),
      "twice the median or more"),
    steps.length > MANY && h("li", {}, "where steps share a pixel: the mean of their parts, and lines "
      + "for the shortest and the longest"),
    steps.some((step) => step.is_cut_off) && h("li", {}, "pale: cut off by the end of the record"));
}

/**
 * The mean parts of steps.
 * @param {Step[]} steps
 */
function partsOf(steps) {
  return PARTS.map(({ name }) => ({ part: name, ps: steps.reduce((sum, step) =>
    sum + value(step, name), 0) / Math.max(steps.length, 1) })).filter(({ ps }) => ps > 0);
}

/** @param {Step[]} steps */
function present(steps) {
  return PARTS.filter(({ name }) => steps.some((step) => value(step, name) > 0));
}

/**
 * @param {Step} step
 * @param {string} part
 * @returns {number}
 */
function value(step, part) {
  return /** @type {any} */ (step)[`${part}_ps`];
}

/**
 * @param {Step[]} steps
 * @returns {import("../../core/table.js").Column[]}
 */
function columns(steps) {
  return [
    { key: "name", title: "Step", width: "minmax(9rem, 1fr)",
      cell: (row) => (row.is_cut_off ? h("span", {}, row.name || `step ${row.step_id}`,
        h("span", { class: "badge after" }, "cut off")) : row.name || `step ${row.step_id}`) },
    { key: "wall_ps", title: "Time", kind: "time", width: "6.5rem" },
    ...present(steps).map(({ name, text }) => /** @type {const} */ ({
      key: `${name}_ps`, title: HEADS[name] ?? text, kind: "time", help: text,
      width: (HEADS[name] ?? text).length > 11 ? "8.5rem" : "6.5rem",
      cell: (/** @type {any} */ row) => (row[`${name}_ps`] ? time(row[`${name}_ps`]) : "0"),
    })),
    { key: "gap_before_ps", title: "Gap before", kind: "time", width: "7rem",
      help: "since the end of the step before" },
    { key: "start_ps", title: "Begins at", kind: "time", width: "6.5rem" },
  ];
}

/** Heads of the table's columns: short, so that all have room. @type {Record<string, string>} */
const HEADS = {
  compute: "Compute", communication: "Collectives", device_to_device: "Copies between",
  device_to_host: "Copies to host", host_to_device: "Copies to device", input_wait: "Input wait",
  compile: "Compile", launch: "Launch", host_compute: "Host", idle: "Idle", unknown: "No event",
};
