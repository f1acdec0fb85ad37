/** The steps: a band above the lanes, a table below, and following one of them. */

import { isAbort } from "../../core/api.js";
import { toolCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { counted, time } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { stackOf } from "./ask.js";
import { Band } from "./bands.js";

const ROW_PX = 15;
const MOST_ROWS = 8;
const TEXT_FROM = 30;
const MARKS = 80;

/** @typedef {import("./bands.js").Shared} Shared */
/**
 * A step on a device; times in ps.
 * @typedef {{place: number, row: number, step_id: number, name: string, device: string | null, start_ps: number, end_ps: number, wall_ps: number, is_cut_off: boolean}} Step
 */

export class Steps {
  /** @type {Step[]} by begin */
  #steps = [];
  /** @type {Step[][]} one for each device, by begin */
  #rows = [];
  /** @type {Step | null} */
  chosen = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Shared} shared
   * @param {(step: Step) => void} follow
   */
  constructor(context, shared, follow) {
    this.context = context;
    this.shared = shared;
    this.follow = follow;
    this.band = new Band(shared, {
      name: "steps", label: "Steps", height: ROW_PX + 3, title: ["Steps"],
      click: (x, y) => {
        const step = this.#at(x, y);
        if (step) follow(step);
      },
      hover: (x, y) => this.#hover(x, y),
    });
    this.band.element.hidden = true;
    this.table = new DataTable({
      label: "Steps", sort: "start_ps", height: "100%", nothing: "no steps",
      columns: [
        { key: "name", title: "Step", cell: nameOf }, { key: "device", title: "Device", width: "12rem" },
        { key: "start_ps", title: "Begins", kind: "time" },
        { key: "wall_ps", title: "Takes", kind: "time", help: "from its begin to its end" },
      ],
      onChoose: (row) => follow(row), isChosen: (row) => row === this.chosen,
    });
    this.element = h("div", { class: "tl-fill" }, loading("Looking for steps"));
    /** @type {Promise<void>} */
    this.ready = new Promise((resolve) => void (this.told = resolve));
  }

  told = () => {};

  async load() {
    try {
      const { data } = await this.context.tool("step_breakdown",
        stackOf(this.context) ? { host: null } : {});
      this.#take(data["steps"]);
      fill(this.element, this.#steps.length ? withExport(this.table, { name: `${this.context.session}_steps`,
        command: () => toolCommand(this.context, "step_breakdown") })
        : empty("No steps", "Nothing in this profile records what a step is."));
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.element, failed(error, () => {
        fill(this.element, loading("Looking for steps"));
        void this.load();
      }));
    }
    this.told();
    this.shared.changed();
  }

  get count() {
    return this.#steps.length;
  }

  /** @param {any[]} rows */
  #take(rows) {
    const isStacked = stackOf(this.context) !== null;
    const steps = rows.map((row) => (isStacked
      ? { ...row, device: [row.host, row.device].filter(Boolean).join(" › ") } : row)).sort((one, other) => one.start_ps - other.start_ps);
    const devices = [...new Set(steps.map(({ device }) => device))].sort();
    this.#rows = devices.slice(0, MOST_ROWS).map(() => []);
    this.#steps = steps.map((step, place) =>
      ({ ...step, place, row: devices.indexOf(step.device) }));
    for (const step of this.#steps) this.#rows[step.row]?.push(step);
    this.table.setRows(this.#steps);
    const shown = this.#rows.length;
    this.band.element.hidden = !this.#steps.length;
    this.band.setHeight(shown * ROW_PX + 3);
    this.band.setLabel(`${counted(this.#steps.length, "step")}${
      devices.length > 1 ? ` of ${devices.length} devices` : ""}`);
    fill(this.band.title, devices.length > 1
      ? h("span", { title: devices.join("\n") }, `Steps of ${devices.length} devices`) : "Steps");
  }

  /**
   * The step that an address names: its id, or its id and its device's place, `3.1`.
   * @param {string} text
   */
  find(text) {
    const [id, row = "0"] = text.split(".");
    return this.#steps.find((one) => String(one.step_id) === id && String(one.row) === row)
      ?? this.#steps.find((one) => String(one.step_id) === id) ?? null;
  }

  /** @param {string} name */
  named(name) {
    return this.#steps.find((one) => one.name === name) ?? null;
  }

  /** What an address calls a step. @param {Step} step */
  key(step) {
    return step.row ? `${step.step_id}.${step.row}` : String(step.step_id);
  }

  /** @param {Step | null} step */
  choose(step) {
    this.chosen = step;
    const place = step ? this.table.rows.indexOf(step) : -1;
    if (place >= 0) this.table.reveal(place);
    else this.table.refresh();
    this.shared.changed();
  }

  /**
   * The step after or before the chosen one, or the one nearest to the middle of what is shown.
   * @param {1 | -1} direction
   */
  neighbour(direction) {
    const steps = this.#rows[this.chosen?.row ?? 0] ?? [];
    if (this.chosen) return steps[steps.indexOf(this.chosen) + direction] ?? null;
    const middle = (this.shared.viewport.from + this.shared.viewport.to) / 2;
    const next = steps.findIndex((step) => step.end_ps > middle);
    return steps[next < 0 ? steps.length - 1 : next] ?? null;
  }

  /** Times of faint lines down all lanes: where the steps in view begin, unless they are many. */
  marks() {
    const { viewport } = this.shared;
    const seen = [];
    const steps = this.#rows[0] ?? [];
    for (let place = lowerBound(steps, viewport.from); place < steps.length; place++) {
      const step = /** @type {Step} */ (steps[place]);
      if (step.start_ps > viewport.to) break;
      if (seen.push(step.start_ps) > MARKS) return [];
    }
    return seen;
  }

  draw() {
    const context = this.band.surface.begin();
    if (!context) return;
    const { viewport } = this.shared;
    const { width } = this.band.surface;
    const colors = palette();
    this.#rows.forEach((steps, row) => {
      const top = 1 + row * ROW_PX;
      let drawn = -1;
      for (let place = lowerBound(steps, viewport.from); place < steps.length; place++) {
        const step = /** @type {Step} */ (steps[place]);
        if (step.start_ps > viewport.to) break;
        const left = Math.max(-2, viewport.x(step.start_ps, width));
        const right = Math.min(width + 2, Math.max(viewport.x(step.end_ps, width), left + 1));
        // Of steps that share a pixel, one is drawn.
        if (right <= drawn + 0.5 && step !== this.chosen) continue;
        drawn = right;
        const isChosen = step === this.chosen;
        context.fillStyle = (isChosen ? colors["accent"] : colors["series-8"]) ?? "";
        context.globalAlpha = isChosen ? 1 : step.place % 2 ? 0.35 : 0.55;
        context.fillRect(left, top, Math.max(1, right - left - 1), ROW_PX - 2);
        context.globalAlpha = 1;
        if (right - left < TEXT_FROM) continue;
        context.fillStyle = (isChosen ? colors["panel"] : colors["text"]) ?? "";
        const begin = Math.max(left, 0) + 4, room = Math.min(right, width) - begin - 4;
        const text = `${step.name} · ${time(step.wall_ps)}`;
        const shown = [text, step.name].find((one) => context.measureText(one).width <= room);
        if (shown) context.fillText(shown, begin, top + ROW_PX / 2 - 0.5);
      }
    });
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #at(x, y) {
    const { viewport } = this.shared;
    const steps = this.#rows[Math.floor((y - 1) / ROW_PX)] ?? [];
    const at = viewport.time(x, this.band.surface.width);
    const reach = (2 * viewport.span) / Math.max(1, this.band.surface.width);
    const step = steps[lowerBound(steps, at - reach)];
    return step && step.start_ps <= at + reach ? step : null;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    const step = this.#at(x, y);
    if (!step) {
      hideTip();
      return;
    }
    showTip(...this.band.place(x, y), [`Step ${nameOf(step)}`, ...(step.device ? [step.device] : []),
      time(step.wall_ps, 5), `begins at ${time(step.start_ps, 7)}`, "A click follows it."]);
  }

  destroy() {
    this.band.destroy();
  }
}

/** @param {{name: string, is_cut_off: boolean}} step */
function nameOf({ name, is_cut_off }) {
  return is_cut_off ? `${name} (cut off)` : name;
}

/**
 * The first step that ends after `time`.
 * @param {Step[]} steps
 * @param {number} time
 */
function lowerBound(steps, time) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((/** @type {Step} */ (steps[middle])).end_ps <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
