/** Ops by steps: how long each op takes in each step, dark where it takes longest. */

import { isAbort } from "../../core/api.js";
import { Surface } from "../../core/canvas.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { count, counted, time, worded } from "../../core/format.js";
import { partOf } from "../../core/parts.js";
import { failed, loading } from "../../core/states.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { cutMiddle } from "./labels.js";
import { WORDING } from "../../core/wording.js";

const ROW_PX = 18, LABEL_PX = 190, NARROW_PX = 110, RIGHT = 8, LETTER_PX = 7, LATER_MS = 120;
/** What is least is still seen. */
const PALEST = 0.07;
const ROWS = WORDING.limits.heat_rows;

/** @typedef {import("./index.js").Params} Params */
/**
 * @typedef {object} Row
 * @property {string} name
 * @property {string} title
 * @property {number} total_ps
 * @property {number} deviation_ps
 * @property {number[]} mean_ps
 * @property {number[]} most_ps
 * @property {number[]} step_id the step with the most, per column
 */
/**
 * @typedef {object} Heat the answer of `step_heat`
 * @property {string | null} device
 * @property {number} steps
 * @property {{first: number[], last: number[], longest: number[], wall_ps: number[]}} columns
 * @property {Row[]} rows
 * @property {Record<string, string | null>} names of the steps of the rows, by their ids
 * @property {number} rows_total
 */

export class HeatStrip {
  /** @type {Heat | null} */
  #shown = null;
  #requested = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {AbortController | null} */
  #asking = null;
  #cursor = { row: -1, column: -1 };
  #by = "op";
  #sort = "time";
  /** @type {string | null} */
  #device = null;
  /** @type {[number, number | null]} */
  #range = [0, null];
  /** The place of the chosen step. */
  #step = -1;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {(step: number, changes: Record<string, string | null>) => void} choose
   */
  constructor(context, choose) {
    this.context = context;
    this.choose = choose;
    this.canvas = h("canvas", { class: "heat", tabindex: 0, role: "application" });
    this.surface = new Surface(this.canvas, (paint, width) => this.#paint(paint, width), () => this.#later());
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => this.#click(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.bys = this.#buttons("Rows of the picture", "heat_by", [["op", "Ops"], ["part", "Parts"],
      ["function", "Functions"]], (by) => { this.#by = by; });
    this.sorts = this.#buttons("Order of the rows", "heat_sort", [["time", "Most time"],
      ["variance", "Differs most"]], (sort) => { this.#sort = sort; });
    this.found = h("span", { class: "quiet", role: "status" });
    this.state = h("div", {});
    this.element = h("section", { class: "panel stack", "aria-labelledby": "heat" },
      h("div", { class: "row-of" }, h("h2", { id: "heat" }, "Every step by op"), this.bys.element,
        this.sorts.element, this.found,
        exportMenu({
          name: `${context.session}_steps_by_op`, json: () => this.#shown, picture: () => this.canvas,
          rows: () => this.#table(),
          command: () => toolCommand(context, "step_heat", { by: this.#by, sort: this.#sort }),
        })),
      this.state, this.canvas);
  }

  /**
   * @param {string | null} device
   * @param {[number, number | null]} range places of steps, the second exclusive; null: all
   * @param {number} step the place of the chosen one
   * @param {Params} params
   */
  show(device, range, step, params) {
    this.#device = device;
    this.#range = range;
    this.#step = step;
    this.#by = this.bys.press(params["heat_by"] ?? "op");
    this.#sort = this.sorts.press(params["heat_sort"] ?? "time");
    this.#later();
    this.surface.redraw();
  }

  destroy() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.surface.destroy();
    hideTip();
  }

  /**
   * @param {string} label
   * @param {string} key of the address
   * @param {[string, string][]} choices the first is the default
   * @param {(choice: string) => void} set
   */
  #buttons(label, key, choices, set) {
    const buttons = choices.map(([choice, title], place) => h("button", { type: "button",
      onclick: () => {
        this.context.change({ [key]: place ? choice : null });
        set(choice);
        press(choice);
        this.#later();
      } }, title));
    const press = (/** @type {string} */ choice) => {
      const result = choices.some(([one]) => one === choice) ? choice : choices[0]?.[0] ?? "";
      buttons.forEach((button, place) =>
        button.setAttribute("aria-pressed", String(choices[place]?.[0] === result)));
      return result;
    };
    return { press, element: h("div", { class: "row-of tight", role: "group", "aria-label": label },
      ...buttons) };
  }

  #left() {
    return this.surface.width < 600 ? NARROW_PX : LABEL_PX;
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), LATER_MS);
  }

  async #ask() {
    const width = Math.floor(this.surface.width - this.#left() - RIGHT);
    if (width < 20 || this.context.signal.aborted) return;
    const [first, last] = this.#range;
    const query = { by: this.#by, sort: this.#sort, device: this.#device, first, last,
      width: Math.min(width, 2048), limit: ROWS };
    const key = JSON.stringify(query);
    if (key === this.#requested) return;
    this.#requested = key;
    this.#asking?.abort();
    const ends = new AbortController();
    this.#asking = ends;
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    if (!this.#shown) fill(this.state, loading("Adding up what each step does"));
    try {
      const { data } = await this.context.tool("step_heat", query, ends.signal);
      if (key !== this.#requested) return;
      this.#shown = data;
      this.#cursor = { row: -1, column: -1 };
      fill(this.state);
      this.#say();
    } catch (error) {
      if (isAbort(error) || key !== this.#requested) return;
      this.#requested = "";
      fill(this.state, failed(error, () => void this.#ask()));
    }
  }

  #say() {
    const shown = this.#shown;
    if (!shown) return;
    const many = shown.rows.length, what = { op: "op", part: "part", function: "function" }[this.#by] ?? "";
    this.found.textContent = many ? worded(WORDING.heat.rows, { rows: `${many < shown.rows_total
      ? `${count(many)} of ` : ""}${counted(shown.rows_total, what)}` })
      : this.#by === "function" ? WORDING.heat.no_function : WORDING.heat.nothing;
    this.canvas.style.height = `${Math.max(many, 1) * ROW_PX}px`;
    this.canvas.hidden = !many;
    const top = shown.rows.slice(0, 3).map((row) => `${this.#title(row)} ${time(row.total_ps)}`);
    this.canvas.setAttribute("aria-label", `Self time of ${counted(many, what)} in ${
      counted(shown.steps, "step")}; most: ${top.join(", ")}. Arrow keys move, Enter chooses a step.`);
    this.surface.redraw();
  }

  /** @param {Row} row */
  #title(row) {
    return this.#by === "part" ? partOf(row.name).text : row.title;
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {number} width
   */
  #paint(paint, width) {
    const shown = this.#shown;
    if (!shown) return;
    const colors = palette(), left = this.#left(), columns = shown.columns.first.length;
    const wide = Math.max(width - left - RIGHT, 1) / Math.max(columns, 1);
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    paint.textAlign = "right";
    shown.rows.forEach((row, place) => {
      const y = place * ROW_PX;
      paint.globalAlpha = 1;
      paint.fillStyle = colors["text"] ?? "";
      paint.fillText(cutMiddle(this.#title(row), (left - 12) / LETTER_PX), left - 8, y + ROW_PX / 2);
      const most = row.most_ps.reduce((one, other) => Math.max(one, other), 1);
      paint.fillStyle = colors[this.#by === "part" ? partOf(row.name).color : "accent"] ?? "";
      row.most_ps.forEach((ps, column) => {
        if (!ps) return;
        paint.globalAlpha = PALEST + (1 - PALEST) * (ps / most);
        // Whole pixels: between two of a fraction the ground would shine through.
        const x = Math.floor(column * wide), next = Math.max(Math.floor((column + 1) * wide), x + 1);
        paint.fillRect(left + x, y + 1, next - x - (wide > 6 ? 1 : 0), ROW_PX - 2);
      });
    });
    paint.globalAlpha = 1;
    paint.strokeStyle = colors["text"] ?? "";
    const chosen = this.#columnOf(this.#step);
    if (chosen >= 0) {
      paint.lineWidth = 1;
      paint.strokeRect(left + Math.floor(chosen * wide) - 0.5, 0.5, Math.max(wide, 2) + 1,
        shown.rows.length * ROW_PX - 1);
    }
    const { row, column } = this.#cursor;
    if (row >= 0 && document.activeElement === this.canvas) {
      paint.lineWidth = 2;
      paint.strokeStyle = colors["focus"] ?? "";
      paint.strokeRect(left + column * wide - 1, row * ROW_PX, Math.max(wide, 4) + 2, ROW_PX);
    }
  }

  /** The column of the step at a place. @param {number} place */
  #columnOf(place) {
    const shown = this.#shown;
    if (!shown || place < 0) return -1;
    const { first, last } = shown.columns;
    return first.findIndex((from, column) => from <= place && place < (last[column] ?? 0));
  }

  /**
   * @param {MouseEvent} event
   * @returns {{row: number, column: number} | null}
   */
  #at(event) {
    const shown = this.#shown, box = this.canvas.getBoundingClientRect(), left = this.#left();
    const columns = shown?.columns.first.length ?? 0;
    const row = Math.floor((event.clientY - box.top) / ROW_PX);
    const column = Math.floor(((event.clientX - box.left - left)
      / Math.max(box.width - left - RIGHT, 1)) * columns);
    const inside = row >= 0 && row < (shown?.rows.length ?? 0) && column >= 0 && column < columns;
    return inside ? { row, column } : null;
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const at = this.#at(event);
    if (at) showTip(event.clientX, event.clientY, this.#facts(at));
    else hideTip();
  }

  /**
   * @param {{row: number, column: number}} at
   * @returns {string[]}
   */
  #facts({ row, column }) {
    const shown = this.#shown, own = shown?.rows[row];
    if (!shown || !own) return [];
    const many = (shown.columns.last[column] ?? 0) - (shown.columns.first[column] ?? 0);
    const id = own.step_id[column] ?? 0, name = shown.names[id] || `step ${id}`;
    return many > 1 ? [this.#title(own), `${count(many)} steps: mean ${time(own.mean_ps[column])}`,
      `most: ${time(own.most_ps[column])} in ${name}`]
      : [this.#title(own), `${time(own.most_ps[column])} in ${name}`];
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const at = this.#at(event);
    if (at) this.#chooseAt(at);
  }

  /** @param {{row: number, column: number}} at */
  #chooseAt({ row, column }) {
    const own = this.#shown?.rows[row], id = own?.step_id[column];
    if (!own || id === undefined) return;
    this.choose(id, this.#by === "part" ? { part_of: own.name, work: null }
      : { part_of: null, work: own.name, why_by: this.#by === "function" ? "function" : null });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const shown = this.#shown;
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!shown?.rows.length) return;
    if (event.key === "Enter" && this.#cursor.row >= 0) {
      event.preventDefault();
      this.#chooseAt(this.#cursor);
      return;
    }
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const fit = (/** @type {number} */ at, /** @type {number} */ many) =>
      Math.max(0, Math.min(at, many - 1));
    this.#cursor = { row: fit(this.#cursor.row + move[0], shown.rows.length),
      column: fit(this.#cursor.column + move[1], shown.columns.first.length) };
    announce(this.#facts(this.#cursor).join(", "));
    this.surface.redraw();
  }

  #table() {
    const shown = this.#shown;
    return { columns: ["name", "first_step", "steps", "mean_ps", "most_ps", "step_id"],
      rows: (shown?.rows ?? []).flatMap((row) => row.mean_ps.map((mean, column) => {
        const first = shown?.columns.first[column] ?? 0;
        return [row.name, first, (shown?.columns.last[column] ?? 0) - first, mean,
          row.most_ps[column], row.step_id[column]];
      })) };
  }
}
