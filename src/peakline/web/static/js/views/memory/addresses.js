/** The address map: where buffers lie, over time, at the moment, as listed, and under other settings. */

import { isAbort } from "../../core/api.js";
import { timeMarks } from "../../core/axis.js";
import { Surface } from "../../core/canvas.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { bytes, count, counted, time, worded } from "../../core/format.js";
import { attachGestures } from "../../core/gestures.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { bandsOf, boxesAtMoment, boxesOverTime, colorsOf, heightAtMoment, paintBoxes, paintEdges, paintFailed,
  segmentsText } from "./address-picture.js";
import { GUTTERS } from "./chart.js";
import { toolCommand } from "../../core/command.js";
import { Following } from "./counters.js";
import { FONT, color, paintMoment, xOf } from "./frame.js";
import { MAPS } from "./state.js";
import { WORDING } from "../../core/wording.js";

const HEIGHT_PX = 300;
const TOP = 6;
const AXIS = 26;

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./address-picture.js").AddressMap} AddressMap */
/** @typedef {import("./address-picture.js").Box} Box */

export class Addresses {
  /** @type {AddressMap | null} */
  #map = null;
  #query = "";
  /** @type {Box[]} */
  #boxes = [];
  /** @type {string[]} */
  #colors = [];
  /** Whether the answer had none. */
  #hasNone = false;
  /** Which reports the file has. @type {(number | null)[]} */
  #listed = [];

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {(changes: Partial<State>, push?: boolean) => void} change
   */
  constructor(context, model, change) {
    this.context = context;
    this.model = model;
    this.change = change;
    this.views = h("div", { class: "row-of memory-draw", role: "group", "aria-label": "Show the map" });
    this.limit = h("input", { type: "text", placeholder: "limit: 8GiB", "aria-label":
      "Limit of the replay, such as 8GiB; empty: the largest that fails", spellcheck: "false" });
    this.settings = h("input", { type: "text", placeholder: "allow_growth=false", "aria-label":
      "Settings of the replay, separated by blanks, such as allow_growth=false", spellcheck: "false" });
    this.form = h("form", { class: "row-of", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      change({ limit: this.limit.value.trim(), settings: this.settings.value.trim() }, true);
    } }, this.limit, this.settings, h("button", { type: "submit" }, "Replay"));
    this.state = h("div");
    this.note = h("p", { class: "quiet total", role: "status" });
    this.canvas = h("canvas", { class: "address-map", role: "img", tabindex: 0 });
    this.frame = h("div", { class: "address-frame" }, this.canvas);
    this.surface = new Surface(this.canvas, (on, width, height) => this.#draw(on, width, height),
      () => this.#follow());
    this.following = new Following(() => this.#wanted(), (query) => this.#ask(query),
      (error) => fill(this.state, failed(error, () => this.#follow())));
    this.table = new DataTable({ label: "Blocks and holes of the map", columns: [
      { key: "address", title: "Address", width: "10rem" },
      { key: "bytes", title: "Bytes", kind: "bytes", width: "7rem" },
      { key: "state", title: "State", width: "7rem" },
      { key: "op", title: "Op" },
      { key: "start_ps", title: "Allocated", kind: "time", width: "7rem" },
      { key: "end_ps", title: "Freed", kind: "time", width: "7rem" },
    ], sort: "-bytes", height: "18rem", onChoose: (row) => this.#choose(row.record),
    isChosen: (row) => row.record !== null && row.record === model.state.buffer });
    this.list = h("details", {}, h("summary", {}, "The same as a table"), this.table.element);
    const head = h("h2", { id: "addresses-heading" }, "Address map");
    this.element = h("section", { class: "panel stack memory-addresses", "aria-labelledby": head.id },
      h("div", { class: "row-of" }, head, this.views, this.form, h("span", { class: "grow" }), exportMenu({
        name: `${context.session}-addresses`, rows: () => rowsOf(this.table), json: () => this.#map,
        picture: () => this.canvas,
        command: () => toolCommand(context, "address_map", this.#question() ?? {}) })),
      this.state, this.note, this.frame, this.list);
    this.ends = [
      model.viewport.onChange(() => this.#moved()),
      attachGestures(this.canvas, {
        viewport: model.viewport, left: () => GUTTERS.left,
        width: () => Math.max(1, this.surface.width - GUTTERS.left - GUTTERS.right),
        scroll: (dy) => window.scrollBy(0, dy),
        click: (x, y) => {
          const result = this.#at(x, y);
          if (result && result.block >= 0) this.#choose(this.#map?.blocks?.record[result.block] ?? null);
        },
        hover: (x, y) => this.#hover(x, y),
        leave: hideTip,
      }),
    ];
  }

  destroy() {
    for (const end of this.ends) end();
    this.surface.destroy();
    this.following.destroy();
  }

  /** What the map is of. @returns {import("./state.js").MapView} */
  get #view() {
    const { state: { map }, isMoment } = this.model;
    return map ?? (isMoment && !this.#hasNone ? "moment" : "none");
  }

  /** What the state names. */
  show() {
    const { state } = this.model, view = this.#view;
    const isOpen = view !== "none";
    fill(this.views, Object.entries(MAPS).map(([name, [text, help]]) => {
      const isThere = name !== "time" || !this.model.isMoment;
      return h("button", { type: "button", title: isThere ? help : "The file says what is live at one moment, not over time",
        disabled: !isThere, "data-key": name,
        "aria-pressed": String(view === name), onclick: () => {
          this.change({ map: /** @type {State["map"]} */ (name) });
          const pressed = this.views.querySelector(`[data-key="${name}"]`);
          if (pressed instanceof HTMLElement) pressed.focus();
        } }, text);
    }));
    this.form.hidden = view !== "replayed";
    if (document.activeElement !== this.limit) this.limit.value = state.limit;
    if (document.activeElement !== this.settings) this.settings.value = state.settings;
    for (const part of [this.state, this.note, this.frame, this.list]) part.hidden = !isOpen;
    this.table.refresh();
    this.#follow();
  }

  #follow() {
    this.surface.redraw();
    void this.following.follow();
  }

  #moved() {
    if (this.#view === "time") this.#follow();
  }

  /** @returns {Record<string, any> | null} */
  #question() {
    const { state, allocator, viewport } = this.model, view = this.#view;
    if (view === "none" || !allocator) return null;
    const own = { view, allocator: allocator.name };
    if (view === "time") return { ...own, start_ps: viewport.from, end_ps: viewport.to };
    if (view === "moment") return { ...own, at_ps: state.at };
    if (view === "listed") {
      const known = this.#listed.includes(state.report) ? state.report : this.#listed[0] ?? null;
      return { ...own, report: known };
    }
    return { ...own, limit_bytes: state.limit, settings: state.settings.split(/\s+/).filter(Boolean) };
  }

  #wanted() {
    const query = this.#question();
    return query && JSON.stringify(query) !== this.#query ? query : null;
  }

  /** @param {Record<string, any>} query */
  async #ask(query) {
    const wait = loading(query["view"] === "replayed" ? "Replaying the allocator" : "Reading addresses");
    if (this.#map?.view !== query["view"]) fill(this.state, wait);
    this.canvas.setAttribute("aria-busy", "true");
    this.#query = JSON.stringify(query);
    try {
      const { settings, ...rest } = query;
      const { data } = await this.context.tool("address_map", settings?.length
        ? { ...rest, settings: settings.join(",") } : rest);
      fill(this.state);
      this.#listed = data.has_listed;
      this.#map = data;
      this.#hasNone = !data.blocks;
      this.#colors = data.blocks ? colorsOf(data.blocks) : [];
      // Where nobody wished for a map that there is not, there is none.
      if (this.#hasNone && this.model.state.map === null) this.show();
      else this.#describe(data);
      // Which blocks there are is known only now.
      if (query["view"] === "listed" && JSON.stringify(this.#question()) !== this.#query) this.#query = "";
    } catch (error) {
      if (isAbort(error)) throw error;
      this.#map = null;
      fill(this.state, failed(error));
    }
    this.canvas.setAttribute("aria-busy", "false");
    this.surface.redraw();
  }

  /** @param {AddressMap} map */
  #describe(map) {
    const { regions, blocks, holes, failed: request } = map;
    const isThere = regions !== null && blocks !== null;
    this.frame.hidden = this.list.hidden = !isThere;
    if (!isThere) {
      this.note.textContent = worded(WORDING.map.none, { reason: map.reason ?? "nothing is known" });
      return;
    }
    const says = WORDING.map;
    const text = [
      worded(says.blocks, { blocks: counted(blocks.bytes.length, "block"),
        regions: counted(regions.bytes.length, "region"),
        size: bytes(regions.bytes.reduce((sum, size) => sum + size, 0)) }),
      map.others ? worded(map.touched ? says.marked : says.not_drawn, { blocks: count(map.others) }) : "",
      holes ? worded(says.holes, { holes: counted(holes.count, "hole"), size: bytes(holes.total_bytes),
        largest: bytes(holes.largest_bytes) }) : "",
      ...segmentsText(map),
      request ? worded(request.op ? says.request_of : says.request,
        { size: bytes(request.rounded_bytes), op: request.op ?? "" }) : "",
      map.limit_bytes !== undefined ? worded(says.limit, { limit: bytes(map.limit_bytes) })
        + `${Object.entries(map.settings ?? {}).map(([name, value]) => `, ${name}=${value}`).join("")}` : "",
      map.view === "replayed" && !request ? says.all_fit : "",
    ].filter(Boolean).join("; ");
    this.note.textContent = `${text}.`;
    this.canvas.setAttribute("aria-label", `Address map. ${text}. The table below says the same.`);
    const at = (/** @type {number} */ region, /** @type {number} */ offset) =>
      addressText(regions.address[region] ?? "0x0", offset);
    this.table.setRows([
      ...blocks.bytes.map((size, n) => ({ address: at(blocks.region[n] ?? 0, blocks.offset[n] ?? 0), bytes: size,
        state: (blocks.state?.[n] ?? "in_use").replace("_", " "), op: opOf(blocks, n),
        start_ps: blocks.start_ps[n], end_ps: blocks.end_ps[n], record: blocks.record[n] ?? null })),
      ...(holes && !blocks.state?.includes("free") ? holes.bytes.map((size, n) => ({
        address: at(holes.region[n] ?? 0, holes.offset[n] ?? 0), bytes: size, state: "hole", op: "",
        start_ps: null, end_ps: null, record: null })) : []),
      ...(map.segments?.bytes ?? []).map((size, n) => ({
        address: at(map.segments?.region[n] ?? 0, map.segments?.offset[n] ?? 0), bytes: size, state: "reserved",
        op: "", start_ps: map.segments?.start_ps[n], end_ps: map.segments?.end_ps[n], record: null })),
    ]);
    const isTime = map.view === "time";
    this.canvas.style.height = `${isTime ? HEIGHT_PX : Math.round(heightAtMoment(map))}px`;
  }

  /**
   * @param {CanvasRenderingContext2D} on
   * @param {number} width
   * @param {number} height
   */
  #draw(on, width, height) {
    const map = this.#map, { state, viewport } = this.model;
    if (!map?.blocks || !map.regions || map.view !== this.#view) return;
    const colors = palette();
    const left = GUTTERS.left, right = width - GUTTERS.right;
    if (map.view === "time") {
      /** @type {import("./frame.js").Frame} */
      const frame = { context: on, colors, viewport, left, right, top: TOP, bottom: height - AXIS, low: 0, high: 1 };
      this.#boxes = boxesOverTime(frame, map);
      on.save();
      on.beginPath();
      on.rect(left, 0, right - left, height - AXIS + 1);
      on.clip();
      paintBoxes(on, colors, this.#boxes.filter(({ hole }) => hole >= 0), [], map.blocks, null);
      this.#touched(frame, map);
      paintBoxes(on, colors, this.#boxes.filter(({ hole }) => hole < 0), this.#colors, map.blocks, state.buffer);
      if (map.segments) paintEdges(on, colors, this.#boxes);
      on.restore();
      labels(frame, map);
      const { shownMoment } = this.model;
      if (shownMoment !== null) paintMoment(frame, shownMoment, time(shownMoment, 7), 0);
      return;
    }
    this.#boxes = boxesAtMoment(map, 0, width, 4);
    paintBoxes(on, colors, this.#boxes, this.#colors, map.blocks, state.buffer);
    paintFailed(on, colors, map, 0, width, 4);
  }

  /**
   * Cells that smaller buffers touch.
   * @param {import("./frame.js").Frame} frame
   * @param {AddressMap} map
   */
  #touched({ context, colors, viewport, left, right, top, bottom }, { touched, regions, start_ps: start = 0, end_ps: end = 1 }) {
    if (!touched || !regions) return;
    const whole = regions.bytes.reduce((sum, size) => sum + size, 0) || 1;
    const bands = bandsOf(regions.bytes, top, bottom);
    let sum = 0;
    const before = regions.bytes.map((size) => (sum += size) - size);
    const yAt = (/** @type {number} */ row) => {
      const at = (row / touched.rows) * whole;
      let region = before.length - 1;
      while (region > 0 && (before[region] ?? 0) > at) region -= 1;
      const band = bands[region] ?? { over: 0, height: 0 };
      return band.over + band.height - ((at - (before[region] ?? 0)) / (regions.bytes[region] || 1)) * band.height;
    };
    const xAt = (/** @type {number} */ column) =>
      left + viewport.x(start + (column * (end - start)) / touched.columns, right - left);
    context.fillStyle = color(colors, "quiet");
    context.globalAlpha = 0.45;
    touched.row.forEach((row, n) => {
      const y = yAt(row + 1), x = xAt(touched.first[n] ?? 0);
      context.fillRect(x, y, xAt(touched.last[n] ?? 0) - x, Math.max(yAt(row) - y, 1));
    });
    context.globalAlpha = 1;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #at(x, y) {
    let results = null;
    for (const box of this.#boxes) {
      if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) {
        if (!results || box.block >= 0) results = box;
      }
    }
    return results;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  #hover(x, y) {
    const map = this.#map, matches = this.#at(x, y);
    const isSegment = matches !== null && matches.block < 0 && map?.view === "time";
    if (!matches || !map?.blocks || !map.regions || (isSegment && !map.segments)) {
      hideTip();
      return;
    }
    const { blocks, holes, regions, segments } = map, box = this.canvas.getBoundingClientRect();
    const of = matches.block >= 0 ? blocks : isSegment ? segments : holes, n = matches.block >= 0 ? matches.block : matches.hole;
    const where = addressText(regions.address[of?.region[n] ?? 0] ?? "0x0", of?.offset[n] ?? 0);
    const size = `${bytes(of?.bytes[n])} at ${where}`;
    const times = isSegment && segments ? segments : blocks;
    const start = times.start_ps[n] ?? null, end = times.end_ps[n] ?? null;
    if (isSegment) {
      showTip(box.left + x, box.top + y, ["reserved, not allocated", `segment of ${size}`,
        `${start === null ? WORDING.memory.from_before : `taken at ${time(start, 7)}`}, `
          + `${end === null ? WORDING.memory.not_returned : `returned at ${time(end, 7)}`}`]);
      return;
    }
    showTip(box.left + x, box.top + y, matches.block < 0 ? ["hole", size] : [
      opOf(blocks, n) || (blocks.state?.[n] ?? "block").replace("_", " "), size,
      ...(blocks.record[n] === null ? [] : [
        `${start === null ? WORDING.memory.from_before : `allocated at ${time(start, 7)}`}, `
          + `${end === null ? WORDING.memory.not_freed : `freed at ${time(end, 7)}`}`,
        ...(start !== null && end !== null ? [`lives for ${time(end - start)}`] : [])]),
    ]);
  }

  /** @param {number | null} record */
  #choose(record) {
    if (record === null) return;
    this.change({ buffer: record === this.model.state.buffer ? null : record, group: "buffer" });
    announce("the buffer is chosen");
  }
}

/**
 * The regions at the left: how large they are, where there is room.
 * @param {import("./frame.js").Frame} frame
 * @param {AddressMap} map
 */
function labels(frame, { regions }) {
  if (!regions) return;
  const { context, colors, viewport, left, right, top, bottom } = frame;
  context.font = FONT;
  context.fillStyle = color(colors, "quiet");
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const { time: at, text } of timeMarks(viewport.from, viewport.to, right - left)) {
    const x = xOf(frame, at);
    if (x > left - 20 && x < right) context.fillText(text, x, bottom + 7);
  }
  context.fillStyle = color(colors, "quiet");
  context.textAlign = "right";
  context.textBaseline = "middle";
  bandsOf(regions.bytes, top, bottom).forEach(({ over, height }, place) => {
    if (height > 12) context.fillText(bytes(regions.bytes[place]), left - 8, over + height / 2);
  });
}

/**
 * @param {import("./address-picture.js").Blocks} blocks
 * @param {number} place
 */
function opOf({ op, ops }, place) {
  const code = op[place] ?? null;
  return code === null ? "" : ops[code] || "(no op)";
}

/**
 * An address in hexadecimal, which may be larger than a number of the browser is exact.
 * @param {string} region
 * @param {number} offset
 */
function addressText(region, offset) {
  return `0x${(BigInt(region) + BigInt(Math.round(offset))).toString(16)}`;
}
