/** The collectives of a step on all ranks: when each came, how long it waited, and the transfer. */

import { isAbort } from "../../core/api.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { withExport } from "../../core/exporting.js";
import { bytes, count, counted, time, worded } from "../../core/format.js";
import { empty, failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { ticks } from "../../core/ticks.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";
import { Rows } from "./rows.js";

/** @typedef {import("./rows.js").Area} Area */
/** @typedef {import("./measures.js").JobSteps} JobSteps */
/** @typedef {import("./heat.js").Cell} Cell */
/**
 * @typedef {object} Collective a row of `collectives` by collective, with its arrivals
 * @property {number} collective
 * @property {string | null} kind
 * @property {string | null} group
 * @property {number | null} size_bytes
 * @property {number} arrive_ps
 * @property {number} last_ps
 * @property {number} end_ps
 * @property {string | null} last_rank
 * @property {number | null} wait_ps
 * @property {number | null} transfer_ps
 * @property {number | null} bus_bytes_per_second
 * @property {number[]} ranks
 * @property {number[]} arrive_after_ps
 * @property {number[]} end_after_ps
 */

/** So many collectives of a step are shown. */
const MOST = 20_000;
const PALE = 0.45;
const MARK_PX = 3, AIR = 0.05, TICKS_APART_PX = 110, DIM = 0.25;
const SPANS = [
  { name: "wait", text: WORDING.job.waiting, color: "series-7" },
  { name: "transfer", text: "transfer", color: "series-4" },
  { name: "last", text: WORDING.job.last, color: "bad" },
];

/** The bars of a step by rank: times in ps since the first arrival. */
export class Bars {
  /**
   * @param {Collective[]} rows
   * @param {number} ranks how many there are
   */
  constructor(rows, ranks) {
    this.begin = rows.reduce((least, row) => Math.min(least, row.arrive_ps), Infinity);
    this.end = rows.reduce((most, row) => Math.max(most, row.end_ps), -Infinity) - this.begin;
    const many = rows.reduce((sum, row) => sum + row.ranks.length, 0);
    /** Where the bars of each rank begin, and the end of the last. */
    this.first = new Int32Array(ranks + 1);
    for (const { ranks: own } of rows) for (const rank of own) this.first[rank + 1] = (this.first[rank + 1] ?? 0) + 1;
    for (let rank = 0; rank < ranks; rank++) this.first[rank + 1] = (this.first[rank + 1] ?? 0) + (this.first[rank] ?? 0);
    this.arrive = new Float64Array(many);
    this.left = new Float64Array(many);
    this.of = new Int32Array(many);
    const next = this.first.slice();
    const order = rows.map((_, place) => place).sort((one, other) =>
      (rows[one]?.arrive_ps ?? 0) - (rows[other]?.arrive_ps ?? 0));
    for (const place of order) {
      const row = rows[place];
      row?.ranks.forEach((rank, member) => {
        const at = next[rank] ?? 0;
        next[rank] = at + 1;
        this.arrive[at] = row.arrive_ps - this.begin + (row.arrive_after_ps[member] ?? 0);
        this.left[at] = row.arrive_ps - this.begin + (row.end_after_ps[member] ?? 0);
        this.of[at] = place;
      });
    }
  }

  /**
   * The bar of a rank at a moment, the last that has begun; -1 where none runs.
   * @param {number} rank
   * @param {number} at
   * @param {number} air of each side
   */
  find(rank, at, air) {
    for (let bar = (this.first[rank + 1] ?? 0) - 1; bar >= (this.first[rank] ?? 0); bar--) {
      if ((this.arrive[bar] ?? 0) - air <= at && at <= (this.left[bar] ?? 0) + air) return bar;
    }
    return -1;
  }
}

export class Arrivals {
  /** @type {Collective[]} */
  #rows = [];
  /** @type {Bars | null} */
  #bars = null;
  /** The place of the chosen collective. */
  #chosen = -1;
  /** What is in view, in ps since the first arrival. @type {[number, number]} */
  #view = [0, 1];
  #ends = new AbortController();
  #requested = "";
  /** Only these stand out. @type {import("./tables.js").Which | null} */
  #which = null;
  /** The bar at which the keys are. */
  #cursor = -1;
  #rank = -1;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {JobSteps} data
   * @param {ReadonlySet<number>} marked places of ranks that others wait for
   * @param {() => void} close
   */
  constructor(context, data, marked, close) {
    this.context = context;
    this.data = data;
    this.canvas = h("canvas", { class: "arrivals", tabindex: 0, role: "application" });
    this.picture = new Rows(this.canvas, {
      draw: (paint, area) => this.#draw(paint, area),
      axis: (paint, area) => this.#axis(paint, area),
      title: (rank) => data.ranks.title[rank] ?? "",
      isMarked: (rank) => marked.has(rank),
    });
    this.title = h("h2", { id: "arrivals" });
    this.link = h("a", { hidden: true });
    this.whole = h("button", { type: "button", hidden: true, onclick: () => this.#choose(-1) }, "Whole step");
    this.state = h("div", {});
    this.table = new DataTable({
      label: "Collectives of the step", height: "16rem",
      columns: [
        { key: "kind", title: "Kind", width: "minmax(7rem, 1fr)" },
        { key: "group", title: "Ranks", width: "minmax(7rem, 1fr)" },
        { key: "size_bytes", title: "Size", kind: "bytes" },
        { key: "last_rank", title: "Last to come", width: "minmax(7rem, 1fr)" },
        { key: "wait_ps", title: "Longest wait", kind: "time" },
        { key: "transfer_ps", title: "Transfer", kind: "time" },
        { key: "bus_bytes_per_second", title: "Bus bandwidth", kind: "number", width: "8.5rem",
          cell: (row) => rate(row.bus_bytes_per_second) },
      ],
      onChoose: (row) => this.#choose(this.#rows.indexOf(row)),
      isChosen: (row) => this.#rows[this.#chosen] === row,
    });
    this.content = h("div", { class: "stack" }, this.picture.element,
      h("ul", { class: "chart-legend" }, ...SPANS.map(({ name, text, color }) => h("li", {}, h("span", {
        class: "swatch", "aria-hidden": "true", style: { backgroundColor: `var(--${color})`,
          opacity: name === "wait" ? String(PALE) : "1" } }), text))),
      withExport(this.table, { name: `${context.session}_collectives_of_step`, json: () => this.#rows,
        picture: () => this.canvas,
        command: () => toolCommand(context, "collectives", { by: "collective", step: this.#requested }) }));
    this.element = h("section", { class: "panel stack", "aria-labelledby": "arrivals", hidden: true },
      h("div", { class: "row-of" }, this.title, this.link, this.whole, h("span", { class: "grow" }),
        h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: close }, "×")),
      this.state, this.content);
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.picture.element.addEventListener("scroll", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const bar = this.#at(event);
      if (bar >= 0) this.#choose(this.#bars?.of[bar] ?? -1);
    });
    this.canvas.addEventListener("keydown", (event) => this.#keydown(event));
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.picture.surface.redraw());
  }

  /**
   * @param {Cell | null} cell
   * @param {import("./order.js").Order} order
   */
  show(cell, order) {
    this.element.hidden = !cell;
    this.picture.setOrder(order);
    if (!cell) {
      this.#ends.abort();
      this.#requested = "";
      return;
    }
    this.#rank = cell.rank;
    const step = this.data.steps[cell.column] ?? "";
    this.title.textContent = `Collectives of ${step}`;
    if (step !== this.#requested) void this.#load(step);
    else this.#follow();
  }

  /** @param {import("./tables.js").Which | null} which collectives, of which alone others shall not distract */
  only(which) {
    this.#which = which;
    this.picture.surface.redraw();
  }

  destroy() {
    this.#ends.abort();
    this.picture.destroy();
    hideTip();
  }

  /** @param {string} step */
  async #load(step) {
    this.#ends.abort();
    const ends = this.#ends = new AbortController();
    this.context.signal.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
    this.#requested = step;
    this.content.hidden = true;
    this.link.hidden = true;
    fill(this.state, loading("Reading the collectives"));
    try {
      const [collectives, spans] = await Promise.all([
        this.context.tool("collectives", { host: "", step, by: "collective", arrivals: true, limit: MOST }, ends.signal),
        this.context.tool("job_steps", { host: "", step }, ends.signal),
      ]);
      if (ends.signal.aborted) return;
      this.#rows = collectives.data.rows;
      this.spans = spans.data;
      this.#bars = this.#rows.length ? new Bars(this.#rows, this.data.ranks.title.length) : null;
      const { rows_total: total } = collectives.data;
      fill(this.state, !this.#bars && empty("No collectives", WORDING.job.no_collectives),
        total > MOST && h("p", { class: "quiet" }, worded(WORDING.job.first_collectives,
          { shown: count(MOST), collectives: counted(total, "collective") })));
      this.content.hidden = !this.#bars;
      this.table.setRows(this.#rows);
      this.#choose(-1);
      this.#follow();
    } catch (error) {
      if (isAbort(error) || ends.signal.aborted) return;
      this.#requested = "";
      fill(this.state, failed(error, () => void this.#load(step)));
    }
  }

  /** Show the rank whose cell was chosen, and where its timeline is. */
  #follow() {
    const begin = this.spans?.begin_ps?.[this.#rank], end = this.spans?.end_ps?.[this.#rank];
    const known = typeof begin === "number" && typeof end === "number";
    this.link.hidden = !known;
    const title = this.data.ranks.title[this.#rank] ?? "";
    if (known) {
      const air = Math.round(AIR * (end - begin));
      this.link.textContent = worded(WORDING.job.timeline, { rank: title });
      this.link.href = this.context.linkTo(this.context.session, "timeline", {
        host: this.data.ranks.host[this.#rank] ?? "", from: begin - air, to: end + air });
    }
    this.#cursor = this.#bars?.first[this.#rank] ?? -1;
    this.picture.reveal(this.picture.placeOf(this.#rank));
    this.canvas.setAttribute("aria-label", worded(WORDING.job.arrivals, {
      collectives: counted(this.#rows.length, "collective"), step: this.#requested, rank: title }));
  }

  /** @param {number} place of a collective; -1: the whole step */
  #choose(place) {
    const row = this.#rows[place], bars = this.#bars;
    if (!bars) return;
    this.#chosen = row ? place : -1;
    const [from, to] = row ? [row.arrive_ps - bars.begin, row.end_ps - bars.begin] : [0, bars.end];
    const air = AIR * Math.max(to - from, 1);
    this.#view = [from - air, to + air];
    this.whole.hidden = !row;
    this.table.refresh();
    this.picture.surface.redraw();
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Area} area
   */
  #draw(paint, area) {
    const bars = this.#bars, colors = palette(), { order, rowPx } = this.picture;
    if (!bars) return;
    const [from, to] = this.#view, scale = area.width / (to - from);
    const [first, last] = this.picture.seen, thick = Math.max(rowPx - (rowPx >= 5 ? 2 : 0), 0.75);
    const shades = SPANS.map(({ color }) => colors[color] ?? "");
    const [waits = "", transfers = "", comesLast = ""] = shades, other = colors["series-8"] ?? "";
    const mine = this.picture.placeOf(this.#rank), which = this.#which;
    if (mine >= 0) {
      paint.fillStyle = colors["band"] ?? "";
      paint.fillRect(0, this.picture.y(mine), area.left + area.width, Math.max(rowPx, 1));
    }
    paint.save();
    paint.beginPath();
    paint.rect(area.left, area.top, area.width, area.height);
    paint.clip();
    for (let place = first; place < last; place++) {
      const rank = order.ranks[place] ?? 0, y = this.picture.y(place);
      for (let bar = bars.first[rank] ?? 0; bar < (bars.first[rank + 1] ?? 0); bar++) {
        const of = bars.of[bar] ?? 0, row = this.#rows[of];
        const arrive = bars.arrive[bar] ?? 0, left = bars.left[bar] ?? 0;
        if (!row || left < from || arrive > to) continue;
        const isMeant = !which || (row.kind === which.kind && row.group === which.group);
        paint.globalAlpha = isMeant && (this.#chosen < 0 || this.#chosen === of) ? 1 : DIM;
        const x = area.left + (arrive - from) * scale, end = area.left + (left - from) * scale;
        const isHeld = row.wait_ps !== null, latest = row.last_ps - bars.begin;
        const until = isHeld ? area.left + (Math.min(latest, left) - from) * scale : x;
        if (until > x) {
          paint.fillStyle = waits;
          const alpha = paint.globalAlpha;
          paint.globalAlpha = alpha * PALE;
          paint.fillRect(x, y, until - x, thick);
          paint.globalAlpha = alpha;
        }
        paint.fillStyle = isHeld ? transfers : other;
        paint.fillRect(Math.max(until, x), y, Math.max(end - Math.max(until, x), 0.5), thick);
        if (isHeld && arrive === latest) {
          paint.fillStyle = comesLast;
          paint.fillRect(x - MARK_PX / 2, y, MARK_PX, Math.max(thick, 2));
        }
      }
    }
    paint.globalAlpha = 1;
    if (document.activeElement === this.canvas && this.#cursor >= 0) {
      const arrive = bars.arrive[this.#cursor] ?? 0, left = bars.left[this.#cursor] ?? 0;
      paint.strokeStyle = colors["focus"] ?? "";
      paint.lineWidth = 2;
      paint.strokeRect(area.left + (arrive - from) * scale - 1, this.picture.y(this.picture.placeOf(this.#rank)) - 1,
        Math.max((left - arrive) * scale, 2) + 2, thick + 2);
    }
    paint.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Area} area
   */
  #axis(paint, area) {
    if (!this.#bars) return;
    const [from, to] = this.#view, scale = area.width / (to - from);
    paint.textAlign = "center";
    for (const at of ticks(Math.max(from, 0), to, area.width / TICKS_APART_PX)) {
      const x = area.left + (at - from) * scale;
      if (x < area.left + area.width - 20) paint.fillText(at ? `+${time(at)}` : "0", x, area.height / 2);
    }
  }

  /** The bar at the pointer; -1 at none. @param {MouseEvent} event */
  #at(event) {
    const { area } = this.picture, place = this.picture.placeAt(event.offsetY), [from, to] = this.#view;
    if (place < 0 || event.offsetX < area.left) return -1;
    const scale = (to - from) / area.width;
    return this.#bars?.find(this.picture.order.ranks[place] ?? 0, from + (event.offsetX - area.left) * scale,
      2 * scale) ?? -1;
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const bar = this.#at(event), place = this.picture.placeAt(event.offsetY);
    if (bar < 0) hideTip();
    else showTip(event.clientX, event.clientY, this.#facts(this.picture.order.ranks[place] ?? 0, bar));
  }

  /**
   * @param {number} rank
   * @param {number} bar
   * @returns {string[]}
   */
  #facts(rank, bar) {
    const bars = this.#bars, row = this.#rows[bars?.of[bar] ?? -1];
    if (!bars || !row) return [];
    const arrive = bars.arrive[bar] ?? 0, left = bars.left[bar] ?? 0, last = row.last_ps - bars.begin;
    const size = row.size_bytes === null ? "" : ` ${bytes(row.size_bytes)}`;
    return [`${this.data.ranks.title[rank]}, ${row.kind ?? "collective"}${size}`,
      `came at +${time(arrive)}`,
      ...(row.wait_ps === null ? [`took ${time(left - arrive)}`]
        : [arrive === last ? "came last" : `waited ${time(Math.min(last, left) - arrive)} for ${row.last_rank}`,
          `transfer ${time(Math.max(left - Math.max(last, arrive), 0))}`]),
      ...(row.group ? [`ranks ${row.group}`] : [])];
  }

  /** @param {KeyboardEvent} event */
  #keydown(event) {
    const bars = this.#bars, { order } = this.picture;
    if (!bars) return;
    const place = this.picture.placeOf(this.#rank);
    const rows = { ArrowUp: -1, ArrowDown: 1 }[event.key], along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const first = bars.first[this.#rank] ?? 0, many = (bars.first[this.#rank + 1] ?? 0) - first;
    if (event.key === "Enter") this.#choose(this.#cursor < 0 ? -1 : bars.of[this.#cursor] ?? -1);
    else if (event.key === "Escape" && this.#chosen >= 0) this.#choose(-1);
    else if (rows) {
      const nth = this.#cursor - first;
      this.#rank = order.ranks[Math.max(0, Math.min(place + rows, order.ranks.length - 1))] ?? 0;
      const from = bars.first[this.#rank] ?? 0, own = (bars.first[this.#rank + 1] ?? 0) - from;
      this.#cursor = own ? from + Math.max(0, Math.min(nth, own - 1)) : -1;
      this.picture.reveal(this.picture.placeOf(this.#rank));
    } else if (along && many) {
      this.#cursor = first + Math.max(0, Math.min(this.#cursor - first + along, many - 1));
      this.picture.surface.redraw();
    } else return;
    if (rows || along) announce(this.#facts(this.#rank, this.#cursor).join(", "));
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A bandwidth in GB/s. @param {number | null} value */
export function rate(value) {
  return value === null ? "–" : `${Number((value / 1e9).toPrecision(3)).toLocaleString("en-US")} GB/s`;
}
