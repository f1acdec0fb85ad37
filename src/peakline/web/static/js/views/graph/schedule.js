/** A program in the order in which it runs: the bytes that are live, time, and its instructions. */

import { Surface } from "../../core/canvas.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { fill, h } from "../../core/dom.js";
import { bytes, count, counted, time, worded } from "../../core/format.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";

const LEFT_PX = 64, RIGHT_PX = 10, TOP_PX = 14, STRIP_PX = 14, GAP_PX = 6;
const WINDOW = 1000;
/** @type {Record<string, string>} */
const FOUND_BY = WORDING.peak_found_by;

/** @typedef {(query: Record<string, string | number | null>) => Promise<any>} AskSchedule */

export class Schedule {
  /** @type {any} */
  #data = null;
  #offset = 0;
  /** @type {number | null} */
  #selected = null;
  /** The place that the pointer or the chosen row is at. @type {number | null} */
  #place = null;

  /**
   * @param {AskSchedule} ask the service's view `schedule`
   * @param {(item: number) => void} choose
   * @param {() => Promise<string>} command that gives the same
   */
  constructor(ask, choose, command) {
    this.ask = ask;
    this.choose = choose;
    this.canvas = h("canvas", { class: "gv-curve", role: "img" });
    // What it shows is not known yet.
    this.canvas.hidden = true;
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#draw(context, width, height));
    this.facts = h("p", { class: "gv-facts-line" });
    this.pages = h("div", { class: "gv-pages" });
    this.table = new DataTable({
      label: "Instructions in order", sort: "place", height: "max(16rem, calc(100vh - 31rem))",
      columns: [
        { key: "place", title: "Place", kind: "count", width: "5.5rem" },
        { key: "name", title: "Instruction" },
        { key: "op", title: "Opcode", width: "8rem" },
        { key: "live_bytes", title: "Live", kind: "bytes", help: "Bytes that are live while it runs" },
        { key: "peak_bytes", title: "At the peak", kind: "bytes",
          help: "Bytes of its results that are live at the program's peak", width: "8rem" },
        { key: "time_ps", title: "Self time", kind: "time", help: "Of all its runs in the profile" },
      ],
      onChoose: (row) => {
        this.#selected = row.item;
        this.#place = row.place;
        this.surface.redraw();
        choose(row.item);
      },
      isChosen: (row) => row.item === this.#selected,
      nothing: "no instructions",
    });
    const menu = exportMenu({ name: "schedule", rows: () => rowsOf(this.table),
      json: () => this.#data, picture: () => this.canvas, command });
    this.element = h("section", { class: "panel gv-schedule", "aria-label": "Schedule", "aria-busy": "true" },
      h("div", { class: "row-of" }, this.facts, menu), this.canvas, this.pages, this.table.element);
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", () => {
      hideTip();
      this.#place = null;
      this.surface.redraw();
    });
    this.canvas.addEventListener("click", (event) => {
      const place = this.#placeAt(event.offsetX);
      if (place !== null) void this.go(place);
    });
  }

  /** @param {number | null} item the selected one */
  async show(item) {
    this.#selected = item;
    const data = await this.ask({ limit: WINDOW, offset: 0, width: 2000 });
    this.#set(data, 0);
    this.element.setAttribute("aria-busy", "false");
    const at = this.table.rows.findIndex((one) => one.item === item);
    if (at >= 0) this.table.reveal(at);
    else if (data.peak >= 0 && item === null) await this.go(data.peak, false);
  }

  /**
   * Load what is around a place, and choose it.
   * @param {number} place
   * @param {boolean} [choose]
   */
  async go(place, choose = true) {
    if (place < this.#offset || place >= this.#offset + this.table.rows.length) {
      await this.#load(Math.max(0, Math.floor(place / WINDOW) * WINDOW));
    }
    const at = this.table.rows.findIndex((row) => row.place === place);
    if (at < 0) return;
    this.table.reveal(at);
    if (!choose) return;
    this.#place = place;
    this.surface.redraw();
    this.#selected = this.table.rows[at].item;
    this.table.refresh();
    this.choose(this.table.rows[at].item);
  }

  destroy() {
    hideTip();
    this.surface.destroy();
  }

  /** @param {number} offset */
  async #load(offset) {
    this.#set(await this.ask({ limit: WINDOW, offset, width: 2000 }), offset);
  }

  /** @param {any} data @param {number} offset */
  #set(data, offset) {
    this.#data = data;
    this.#offset = offset;
    this.table.setRows(data.rows);
    const known = data.peak >= 0;
    const says = WORDING.schedule;
    fill(this.facts, worded(data.is_given ? says.given : says.of_file,
      { instructions: counted(data.instructions, "instruction") }), " ",
    known ? worded(says.peak, { peak: bytes(data.peak_bytes), place: count(data.peak),
      lasting: bytes(data.lasting_bytes), how: FOUND_BY[data.found_by] ?? data.found_by }) : says.unknown);
    this.canvas.hidden = !known;
    this.canvas.setAttribute("aria-label", known ? `Live bytes by instruction: at most `
      + `${bytes(data.peak_bytes)} at place ${data.peak} of ${data.instructions}. The table below has `
      + `every instruction.` : "");
    const last = Math.min(offset + WINDOW, data.instructions);
    fill(this.pages, ...(data.instructions > WINDOW ? [
      h("button", { type: "button", disabled: offset === 0, onclick: () => void this.#load(offset - WINDOW) },
        "Earlier"),
      h("span", {}, ` ${count(offset)} to ${count(last - 1)} of ${count(data.instructions)} `),
      h("button", { type: "button", disabled: last >= data.instructions,
        onclick: () => void this.#load(offset + WINDOW) }, "Later")] : []),
    known && h("button", { type: "button", onclick: () => void this.go(data.peak) }, "To the peak"));
    this.surface.redraw();
  }

  /** @param {number} x */
  #placeAt(x) {
    const { width } = this.surface, data = this.#data;
    if (!data?.instructions) return null;
    const share = (x - LEFT_PX) / Math.max(width - LEFT_PX - RIGHT_PX, 1);
    return Math.min(data.instructions - 1, Math.max(0, Math.floor(share * data.instructions)));
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const place = this.#placeAt(event.offsetX), data = this.#data;
    if (place === null) return;
    const { begin, live_bytes: live, time_ps: spent } = data.curve;
    let at = begin.findIndex((/** @type {number} */ one) => one > place);
    at = (at < 0 ? begin.length : at) - 1;
    const row = this.table.rows.find((one) => one.place === place);
    this.#place = place;
    this.surface.redraw();
    showTip(event.clientX, event.clientY, [row?.name ?? `place ${count(place)}`,
      `${bytes(live[at])} live`, ...(spent[at] ? [`${time(spent[at])} self time`] : [])]);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const data = this.#data, colors = palette();
    if (!data?.curve.live_bytes.length) return;
    const { begin, live_bytes: live, time_ps: spent } = data.curve;
    const whole = width - LEFT_PX - RIGHT_PX, bottom = height - STRIP_PX - GAP_PX - 16;
    const most = Math.max(data.peak_bytes, 1), size = data.instructions;
    const x = (/** @type {number} */ place) => LEFT_PX + (place / size) * whole;
    const y = (/** @type {number} */ value) => bottom - (value / most) * (bottom - TOP_PX);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      context.fillStyle = colors["line"] ?? "";
      context.fillRect(LEFT_PX, Math.round(y(most * share)), whole, 1);
      context.fillStyle = colors["quiet"] ?? "";
      context.fillText(bytes(most * share), LEFT_PX - 6, y(most * share));
    }
    context.beginPath();
    context.moveTo(x(0), bottom);
    live.forEach((/** @type {number} */ value, /** @type {number} */ at) => {
      context.lineTo(x(begin[at]), y(value));
      context.lineTo(x(begin[at + 1] ?? size), y(value));
    });
    context.lineTo(x(size), bottom);
    context.closePath();
    context.fillStyle = colors["series-4"] ?? "";
    context.globalAlpha = 0.3;
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = colors["quiet"] ?? "";
    context.setLineDash([4, 3]);
    context.strokeStyle = colors["quiet"] ?? "";
    context.beginPath();
    context.moveTo(x(0), y(data.lasting_bytes));
    context.lineTo(x(size), y(data.lasting_bytes));
    context.stroke();
    context.setLineDash([]);
    const longest = Math.max(1, ...spent);
    context.fillStyle = colors["series-2"] ?? "";
    spent.forEach((/** @type {number} */ value, /** @type {number} */ at) => {
      context.globalAlpha = value ? 0.15 + 0.85 * Math.sqrt(value / longest) : 0;
      context.fillRect(x(begin[at]), bottom + GAP_PX, Math.max(1, x(begin[at + 1] ?? size) - x(begin[at])), STRIP_PX);
    });
    context.globalAlpha = 1;
    context.textAlign = "left";
    context.fillStyle = colors["quiet"] ?? "";
    context.fillText(spent.some(Boolean) ? "self time" : "no times", 2, bottom + GAP_PX + STRIP_PX / 2);
    context.fillText("place 0", LEFT_PX, height - 8);
    context.textAlign = "right";
    context.fillText(count(size - 1), width - RIGHT_PX, height - 8);
    this.#mark(context, x(data.peak + 0.5), bottom, colors["bad"] ?? "");
    if (this.#place !== null) this.#mark(context, x(this.#place + 0.5), bottom, colors["accent"] ?? "");
  }

  /** @param {CanvasRenderingContext2D} context @param {number} at @param {number} bottom @param {string} color */
  #mark(context, at, bottom, color) {
    context.fillStyle = color;
    context.fillRect(at - 0.75, TOP_PX - 8, 1.5, bottom - TOP_PX + 8);
  }
}
