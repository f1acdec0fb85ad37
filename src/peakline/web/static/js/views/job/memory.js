/** The peaks of all ranks in one picture, and what those that stand out hold differently. */

import { byteMarks } from "../../core/axis.js";
import { Surface } from "../../core/canvas.js";
import { categoryColor } from "../../core/colors.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu, withExport } from "../../core/exporting.js";
import { bytes, counted, worded } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} RankPeak
 * @property {string} title
 * @property {string} host
 * @property {number | null} peak_bytes
 * @property {number | null} headroom_bytes
 * @property {string} nothing
 * @property {{allocator: string, peak_bytes: number, capacity_bytes: number | null, categories: Record<string, number>}[]} allocators
 */
/**
 * @typedef {object} JobMemory the answer of `job_memory`, as far as the page shows it
 * @property {string} headline
 * @property {any} memory
 * @property {RankPeak[]} ranks
 */
/** @typedef {import("../../shell/context.js").Context} Context */

const LEFT_PX = 74, RIGHT_PX = 10, TOP_PX = 10, BOTTOM_PX = 22, WIDEST_PX = 90, FEW = 16, AIR = 1.08;
/** From this part of the capacity on the line of it is in the picture. */
const NEAR = 0.5;

/**
 * A panel that loads what it says; null where no rank has memory.
 * @param {Context} context
 */
export function memoryPanel(context) {
  const body = h("div", { class: "stack" });
  /** @type {PeaksPicture | null} */
  let picture = null;
  void load();
  return { element: h("section", { class: "panel stack", "aria-labelledby": "peaks-of-ranks" },
    h("h2", { id: "peaks-of-ranks" }, "Peak memory of all ranks"), body),
  destroy: () => picture?.destroy() };

  async function load() {
    fill(body, loading("Reading the memory of all ranks"));
    try {
      const { data } = await context.tool("job_memory", { host: "" });
      if (context.signal.aborted) return;
      draw(data);
    } catch (error) {
      if (!context.signal.aborted) fill(body, failed(error, () => void load()));
    }
  }

  /** @param {JobMemory} data */
  function draw(data) {
    if (!data.memory) {
      fill(body, h("p", {}, WORDING.job.no_peaks), h("p", { class: "quiet" }, WORDING.records_memory_briefly));
      return;
    }
    picture = new PeaksPicture(context, data);
    fill(body, h("div", { class: "with-menu" }, h("p", { class: "grow" }, `${capital(data.headline)}.`),
      exportMenu({ name: `${context.session}_memory_of_ranks`, json: () => data, picture: () => picture?.canvas ?? null,
        rows: () => rowsOf(data), command: () => toolCommand(context, "job_memory") })),
    picture.element, ...heldParts(context, data));
  }
}

/** The ranks as bars: by category where that is recorded, the fullest first where there are many. */
class PeaksPicture {
  #at = 0;

  /**
   * @param {Context} context
   * @param {JobMemory} data
   */
  constructor(context, data) {
    this.context = context;
    this.ranks = data.ranks.filter((one) => one.peak_bytes !== null);
    if (this.ranks.length > FEW) {
      this.ranks.sort((one, other) => (other.peak_bytes ?? 0) - (one.peak_bytes ?? 0));
    }
    this.categories = /** @type {string[]} */ ((data.memory.categories ?? []).map(
      (/** @type {any} */ one) => one.category));
    this.apart = new Set((data.memory.differences ?? []).map((/** @type {any} */ one) => one.rank));
    const capacities = this.ranks.map((one) => mainOf(one)?.capacity_bytes ?? null).filter((one) => one !== null);
    this.most = Math.max(...this.ranks.map((one) => one.peak_bytes ?? 0), 1);
    const least = Math.min(...capacities);
    this.capacity = capacities.length ? least : null;
    this.isNear = this.capacity !== null && this.most > NEAR * this.capacity;
    this.top = AIR * Math.max(this.most, this.isNear ? this.capacity ?? 0 : 0);
    this.canvas = h("canvas", { class: "peaks", tabindex: 0, role: "application",
      "aria-label": worded(WORDING.job.peaks, { ranks: counted(this.ranks.length, "rank"),
        most: bytes(this.most), rank: data.memory.peak_bytes.max_rank }) });
    this.surface = new Surface(this.canvas, (paint, width, height) => this.#paint(paint, width, height));
    const names = this.categories.map((name, place) => h("li", {}, h("span", { class: "swatch",
      "aria-hidden": "true", style: { backgroundColor: categoryColor(place) } }), titleOf(name)));
    const said = this.capacity === null ? WORDING.job.no_capacity
      : this.isNear ? "" : worded(WORDING.job.capacity, { capacity: bytes(this.capacity) });
    this.element = h("div", {}, this.canvas, h("ul", { class: "chart-legend" }, ...names,
      said && h("li", { class: "quiet" }, said),
      this.ranks.length > FEW && h("li", { class: "quiet" }, WORDING.job.fullest_first)));
    this.canvas.addEventListener("pointermove", (event) => {
      const place = this.#placeAt(event.offsetX);
      if (place < 0) hideTip();
      else showTip(event.clientX, event.clientY, this.#facts(place));
    });
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => this.#open(this.#placeAt(event.offsetX)));
    this.canvas.addEventListener("keydown", (event) => this.#keydown(event));
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.surface.redraw());
  }

  destroy() {
    this.surface.destroy();
    hideTip();
  }

  get wide() {
    return Math.min((this.surface.width - LEFT_PX - RIGHT_PX) / Math.max(this.ranks.length, 1), WIDEST_PX);
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {number} width
   * @param {number} height
   */
  #paint(paint, width, height) {
    const colors = palette(), { wide } = this, low = height - BOTTOM_PX;
    const y = (/** @type {number} */ value) => low - (value / this.top) * (low - TOP_PX);
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    for (const at of byteMarks(this.top, (low - TOP_PX) / 40)) {
      paint.fillStyle = colors["line"] ?? "";
      paint.fillRect(LEFT_PX, Math.round(y(at)), width - LEFT_PX - RIGHT_PX, 1);
      paint.fillStyle = colors["quiet"] ?? "";
      paint.textAlign = "right";
      paint.fillText(bytes(at), LEFT_PX - 8, y(at));
    }
    const gap = wide >= 4 ? 1 : 0, plain = colors["series-1"] ?? "";
    const shades = this.categories.map((_, place) => categoryColor(place));
    this.ranks.forEach((rank, place) => {
      const x = LEFT_PX + place * wide, own = mainOf(rank)?.categories ?? {}, broad = Math.max(wide - gap, 1);
      let from = 0;
      this.categories.forEach((name, which) => {
        const size = own[name] ?? 0;
        paint.fillStyle = shades[which] ?? "";
        paint.fillRect(x, y(from + size), broad, y(from) - y(from + size));
        from += size;
      });
      paint.fillStyle = plain;
      if ((rank.peak_bytes ?? 0) > from) paint.fillRect(x, y(rank.peak_bytes ?? 0), broad, y(from) - y(rank.peak_bytes ?? 0));
      if (this.apart.has(rank.title)) {
        paint.fillStyle = colors["bad"] ?? "";
        paint.fillRect(x, y(rank.peak_bytes ?? 0) - 3, Math.max(broad, 2), 3);
      }
    });
    if (this.isNear && this.capacity !== null) {
      paint.strokeStyle = colors["bad"] ?? "";
      paint.setLineDash([6, 4]);
      paint.beginPath();
      paint.moveTo(LEFT_PX, y(this.capacity));
      paint.lineTo(width - RIGHT_PX, y(this.capacity));
      paint.stroke();
      paint.setLineDash([]);
      paint.textAlign = "left";
      paint.fillStyle = colors["bad"] ?? "";
      paint.fillText(`capacity ${bytes(this.capacity)}`, LEFT_PX + 4, y(this.capacity) - 8);
    }
    this.#names(paint, colors, low);
    if (document.activeElement === this.canvas) {
      paint.strokeStyle = colors["focus"] ?? "";
      paint.lineWidth = 2;
      paint.strokeRect(LEFT_PX + this.#at * wide - 1, TOP_PX, Math.max(wide, 3) + 1, low - TOP_PX);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number} low
   */
  #names(paint, colors, low) {
    const { wide } = this;
    paint.fillStyle = colors["quiet"] ?? "";
    paint.textAlign = "center";
    let until = -Infinity;
    this.ranks.forEach(({ title }, place) => {
      const half = paint.measureText(title).width / 2;
      const middle = Math.max(LEFT_PX + (place + 0.5) * wide, LEFT_PX + half);
      if (middle - half < until || middle + half > this.surface.width) return;
      paint.fillText(title, middle, low + BOTTOM_PX / 2 + 1);
      until = middle + half + 12;
    });
  }

  /** @param {number} x */
  #placeAt(x) {
    const place = Math.floor((x - LEFT_PX) / this.wide);
    return place >= 0 && place < this.ranks.length ? place : -1;
  }

  /** @param {number} place */
  #facts(place) {
    const rank = this.ranks[place];
    if (!rank) return [];
    const own = mainOf(rank);
    return [rank.title, `peak ${bytes(rank.peak_bytes)}`,
      ...(rank.headroom_bytes === null ? [] : [`${bytes(rank.headroom_bytes)} left`]),
      ...Object.entries(own?.categories ?? {}).filter(([, size]) => size)
        .sort(([, one], [, other]) => other - one).map(([name, size]) => `${titleOf(name)} ${bytes(size)}`)];
  }

  /** @param {number} place */
  #open(place) {
    const rank = this.ranks[place];
    if (rank) location.hash = this.context.linkTo(this.context.session, "memory", { host: rank.host });
  }

  /** @param {KeyboardEvent} event */
  #keydown(event) {
    const last = this.ranks.length - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: this.#at - 1, ArrowRight: this.#at + 1, Home: 0, End: last };
    const place = places[event.key];
    if (event.key === "Enter") this.#open(this.#at);
    else if (place !== undefined) {
      this.#at = Math.max(0, Math.min(place, last));
      announce(this.#facts(this.#at).join(", "));
      this.surface.redraw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/**
 * What ranks that stand out hold more or less than their peers; else the fullest beside the emptiest.
 * @param {Context} context
 * @param {JobMemory} data
 */
function heldParts(context, { memory }) {
  /** @type {{title: string, held: any[]}[]} */
  const choices = memory.differences.map((/** @type {any} */ one) =>
    ({ title: worded(WORDING.job.beside_peers, { rank: one.rank }), held: one.held }));
  if (!choices.length && memory.fullest_beside_emptiest.length) {
    const { max_rank: fullest, min_rank: emptiest } = memory.peak_bytes;
    choices.push({ title: worded(WORDING.job.beside, { rank: fullest, other: emptiest }),
      held: memory.fullest_beside_emptiest });
  }
  if (!choices.length) return [];
  /** @type {import("../../core/table.js").Column[]} */
  const columns = [
    { key: "more_bytes", title: "More", kind: "bytes",
      cell: (row) => `${row.more_bytes > 0 ? "+" : ""}${bytes(row.more_bytes)}` }, { key: "bytes", title: "Bytes", kind: "bytes" },
    { key: "usual_bytes", title: "Others", kind: "bytes" }, { key: "count", title: "Buffers", kind: "count", width: "6rem" },
    { key: "op", title: "Op", width: "minmax(12rem, 3fr)" }, { key: "category", title: "Category", width: "8rem" },
    { key: "data_type", title: "Type", width: "6rem" }, { key: "shape", title: "Shape", width: "minmax(7rem, 1fr)" },
    { key: "steps", title: "Steps", width: "6rem", unsorted: true },
  ];
  // What is recorded of none of them is no column.
  const all = choices.flatMap(({ held }) => held);
  const table = new DataTable({ label: "What a rank holds differently", height: "16rem",
    columns: columns.filter(({ key }) => key === "more_bytes" || key === "op"
      || all.some((one) => one[key] || one[key] === 0)) });
  const show = (/** @type {number} */ place) => table.setRows((choices[place]?.held ?? []).map((one) => ({
    ...one, more_bytes: one.bytes - one.usual_bytes, op: one.op || "(no op)",
    steps: one.steps ? [...new Set(one.steps)].join("–") : "" })));
  show(0);
  const choice = h("select", { "aria-label": "Rank that differs" },
    ...choices.map(({ title }, place) => h("option", { value: place }, title)));
  choice.addEventListener("change", () => show(Number(choice.value)));
  return [withExport(table, { name: `${context.session}_held_differently`, json: () => choices },
    choices.length > 1 ? choice : h("h3", {}, choices[0]?.title ?? ""))];
}

/** The allocator that reaches highest. @param {RankPeak} rank */
function mainOf({ allocators }) {
  return allocators.reduce((most, one) => one.peak_bytes > most.peak_bytes ? one : most,
    allocators[0] ?? { allocator: "", peak_bytes: 0, capacity_bytes: null, categories: {} });
}

/** @param {JobMemory} data */
function rowsOf({ ranks }) {
  return { columns: ["rank", "host", "peak_bytes", "headroom_bytes"],
    rows: ranks.map((one) => [one.title, one.host, one.peak_bytes, one.headroom_bytes]) };
}

/** @param {string} category */
function titleOf(category) {
  return category || "not known";
}

/** @param {string} text */
function capital(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
