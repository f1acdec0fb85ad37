/** Why a step took so long: in sentences, by part, by op or function, and the events. */

import { isAbort } from "../../core/api.js";
import { announce, fill, h } from "../../core/dom.js";
import { toolCommand } from "../../core/command.js";
import { exportMenu } from "../../core/exporting.js";
import { failed, loading } from "../../core/states.js";
import { DifferenceTable, eventLink } from "./difference_table.js";
import { Waterfall } from "./waterfall.js";
import { worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Params} Params */
/** @typedef {import("./facts.js").Step} Step */
/** @typedef {{event: number, line: number, line_name: string, start_ps: number, duration_ps: number}} EventLink */
/**
 * @typedef {object} Work an op or a function in one part of the time
 * @property {string} part
 * @property {string | null} name
 * @property {string} title
 * @property {string} side
 * @property {number} count
 * @property {number} usual_count
 * @property {number} ps
 * @property {number} usual_ps
 * @property {number} difference_ps
 * @property {number} self_ps
 * @property {number} usual_self_ps
 * @property {EventLink[]} events
 * @property {EventLink[]} usual_events
 */
/** @typedef {{part: string, ps: number, usual_ps: number, difference_ps: number, unattributed_ps: number, unattributed_difference_ps: number}} PartDifference */
/**
 * @typedef {object} Side
 * @property {number} step_id
 * @property {string | null} name
 * @property {number} last_id
 * @property {number} steps
 * @property {number} examined
 * @property {boolean} is_median
 * @property {number} start_ps
 * @property {number} end_ps
 */
/**
 * @typedef {object} Difference the answer of `step_difference`
 * @property {string | null} device
 * @property {Side} step
 * @property {Side} against
 * @property {number} wall_ps
 * @property {number} usual_wall_ps
 * @property {number} difference_ps
 * @property {boolean} is_slow
 * @property {boolean} is_warm_up
 * @property {string[]} sentences
 * @property {PartDifference[]} parts
 * @property {Work[]} ops
 * @property {number} ops_total
 * @property {Work[]} frames
 * @property {number} frames_total
 */

/** Ids of steps to compare with. @typedef {{previous: number | null, next: number | null, shortest: number | null}} Others */

const OTHER = "other";
const MUCH = WORDING.thresholds.explains;

export class Why {
  #key = "";
  /** @type {AbortController | null} */
  #asking = null;
  /** @type {Difference | null} */
  #shown = null;
  /** @type {Params} */
  #params = {};
  /** @type {Others} */
  #others = { previous: null, next: null, shortest: null };
  /** @type {Step | undefined} */
  #step;
  /** @type {Step | undefined} */
  #last;

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    this.waterfall = new Waterfall((part) => {
      context.change({ part_of: part || null });
      this.#params = { ...this.#params, part_of: part };
      this.#draw();
    });
    this.table = new DifferenceTable(context, (changes) => context.change(changes));
    this.heading = h("h2", { id: "why" });
    this.sentences = h("div", { class: "sentences" });
    this.picker = h("select", { id: "against" });
    this.picker.addEventListener("change", () => this.#pick(this.picker.value));
    this.other = h("input", { id: "against-other", size: 14, "aria-label": "Compare with step",
      placeholder: "step's name or id", spellcheck: "false" });
    this.other.addEventListener("change", () => {
      if (this.other.value.trim()) this.#compare(this.other.value.trim());
    });
    this.body = h("div", { class: "stack" });
    this.element = h("section", { class: "panel stack", "aria-labelledby": "why", hidden: true },
      h("div", { class: "row-of" }, this.heading, h("span", { class: "grow" }),
        h("label", { for: "against" }, "compared with"), this.picker, this.other,
        exportMenu({
          name: `${context.session}_step`, json: () => this.#shown,
          picture: () => this.waterfall.picture,
          command: () => toolCommand(context, "step_difference", {
            step: this.#params["step"] ?? null, last: this.#params["last"] ?? null,
            against: this.#params["against"] ?? null,
          }),
        })),
      this.sentences, this.body);
  }

  /**
   * @param {Step | undefined} step none: nothing is shown
   * @param {Step | undefined} last of a range
   * @param {Others} others
   * @param {Params} params
   */
  show(step, last, others, params) {
    this.#params = params;
    this.element.hidden = !step;
    if (!step) {
      this.#asking?.abort();
      this.#key = "";
      return;
    }
    const until = last && last.step_id !== step.step_id ? last : null;
    this.heading.textContent = until ? `${nameOf(step)} to ${nameOf(until)}` : `Why ${nameOf(step)}`;
    this.#others = others;
    this.#step = step;
    this.#last = last;
    this.#fillPicker(params["against"] ?? "");
    const requested = { step: step.step_id, last: until?.step_id ?? null,
      against: params["against"] ?? null, device: step.device };
    const key = JSON.stringify(requested);
    if (key !== this.#key) void this.#ask(key, requested);
    else this.#draw();
  }

  destroy() {
    this.#asking?.abort();
    this.waterfall.destroy();
  }

  /**
   * @param {string} key
   * @param {Record<string, string | number | null>} requested
   */
  async #ask(key, requested) {
    this.#key = key;
    this.#asking?.abort();
    const ends = new AbortController();
    this.#asking = ends;
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    fill(this.sentences);
    fill(this.body, loading("Comparing the steps"));
    try {
      const { data } = await this.context.tool("step_difference", requested, ends.signal);
      if (key !== this.#key) return;
      this.#shown = data;
      announce(data.sentences[0] ?? "");
      this.#draw();
    } catch (error) {
      if (isAbort(error) || key !== this.#key) return;
      this.#shown = null;
      fill(this.body, failed(error, () => void this.#ask(key, requested)));
    }
  }

  #draw() {
    const shown = this.#shown;
    if (!shown || this.element.hidden) return;
    const [first = "", ...others] = shown.sentences;
    const longest = shown.ops.find((work) => work.events.length
      && work.difference_ps / shown.difference_ps >= MUCH);
    const air = Math.round((shown.step.end_ps - shown.step.start_ps) * 0.05);
    const badge = shown.is_slow ? h("span", { class: "badge warning" }, "slow")
      : shown.is_warm_up ? h("span", { class: "badge" }, "warm-up") : null;
    const examined = shown.step.examined < shown.step.steps
      && h("p", { class: "quiet" }, worded(WORDING.steps.examined,
        { examined: shown.step.examined, steps: shown.step.steps }));
    fill(this.sentences,
      h("p", { class: "lead" }, badge, badge && " ", first),
      ...others.map((text) => h("p", {}, text)), examined,
      h("p", { class: "row-of" },
        longest?.events[0] && h("a", {
          href: eventLink(this.context, longest.events[0], shown.step) },
        `Show ${longest.title} in the timeline`),
        h("a", { href: this.context.link("timeline", { from: shown.step.start_ps - air,
          to: shown.step.end_ps + air, step: shown.step.step_id }) }, "Show the step there")));
    const isSame = shown.step.steps === 1 && shown.step.step_id === shown.against.step_id;
    if (isSame) {
      fill(this.body, h("p", { class: "quiet" },
        WORDING.steps.choose_another));
      return;
    }
    const part = shown.parts.some((one) => one.part === this.#params["part_of"])
      ? this.#params["part_of"] ?? "" : "";
    if (!this.body.contains(this.waterfall.element)) {
      fill(this.body, this.waterfall.element, this.table.element);
    }
    this.waterfall.show(shown, part);
    this.table.show(shown, { by: this.#params["why_by"] ?? "op", part,
      work: this.#params["work"] ?? "" });
  }

  /** @param {string} against as in the address; "" is the median step */
  #fillPicker(against) {
    const { previous, next, shortest } = this.#others;
    /** @type {[string, string][]} */
    const choices = [["", "the median step"]];
    for (const [id, text] of /** @type {const} */ ([[previous, "the step before"],
      [next, "the step after"], [shortest, "the shortest step"]])) {
      if (id !== null && id !== this.#step?.step_id) choices.push([String(id), text]);
    }
    choices.push([OTHER, "another step …"]);
    fill(this.picker, ...choices.map(([value, text]) => h("option", { value }, text)));
    const isListed = choices.some(([value]) => value === against);
    this.picker.value = isListed ? against : OTHER;
    this.other.hidden = isListed;
    if (!isListed) this.other.value = against;
  }

  /** @param {string} value */
  #pick(value) {
    this.other.hidden = value !== OTHER;
    if (value === OTHER) {
      this.other.value = "";
      this.other.focus();
    } else {
      this.#compare(value);
    }
  }

  /** @param {string} against */
  #compare(against) {
    this.context.change({ against: against || null, part_of: null, work: null }, true);
    this.show(this.#step, this.#last, this.#others,
      { ...this.#params, against, part_of: "", work: "" });
  }
}

/** @param {Step} step */
function nameOf(step) {
  return step.name || `step ${step.step_id}`;
}
