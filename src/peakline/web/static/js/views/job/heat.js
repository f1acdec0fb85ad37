/** Ranks by steps: a cell for each, colored by what is measured. */

import { contextOf } from "../../core/canvas.js";
import { announce, fill, h } from "../../core/dom.js";
import { count, counted, worded } from "../../core/format.js";
import { palette, theme } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";
import { Rows } from "./rows.js";

const WIDEST_CELL_PX = 120, GAP_FROM_PX = 5, TICK_PX = 8;

/** @typedef {import("./measures.js").Measure} Measure */
/** @typedef {import("./measures.js").Name} Name */
/** @typedef {import("./rows.js").Area} Area */
/** @typedef {{rank: number, column: number}} Cell */

export class HeatMap {
  /** @type {Measure} */
  #measure;
  /** The cell at which the keys are. @type {Cell} */
  #cursor = { rank: -1, column: 0 };
  /** @type {Cell | null} */
  #chosen = null;
  /** The cells in view as they were drawn last, and of what. */
  #picture = h("canvas");
  #key = "";
  #version = 0;

  /**
   * @param {import("./measures.js").JobSteps} data
   * @param {Map<Name, Measure>} measures
   * @param {ReadonlySet<number>} marked places of ranks that others wait for
   * @param {(cell: Cell) => void} choose
   */
  constructor(data, measures, marked, choose) {
    this.data = data;
    this.measures = measures;
    this.choose = choose;
    this.#measure = /** @type {Measure} */ ([...measures.values()][0]);
    this.labels = shortened(data.steps);
    this.canvas = h("canvas", { class: "heat", tabindex: 0, role: "application" });
    this.rows = new Rows(this.canvas, {
      draw: (paint, area) => this.#draw(paint, area),
      axis: (paint, area) => this.#axis(paint, area),
      title: (rank) => data.ranks.title[rank] ?? "",
      isMarked: (rank) => marked.has(rank),
    });
    this.legend = h("div", { class: "heat-legend row-of" });
    this.element = h("div", {}, this.rows.element, this.legend);
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.rows.element.addEventListener("scroll", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const cell = this.#at(event);
      if (cell) this.#choose(cell);
    });
    this.canvas.addEventListener("keydown", (event) => this.#keydown(event));
    this.canvas.addEventListener("focus", () => this.rows.surface.redraw());
    this.canvas.addEventListener("blur", () => this.rows.surface.redraw());
  }

  /**
   * @param {Measure} measure
   * @param {import("./order.js").Order} order
   * @param {Cell | null} chosen
   */
  show(measure, order, chosen) {
    this.#measure = measure;
    this.#chosen = chosen;
    this.#version += 1;
    this.rows.setOrder(order);
    if (this.#cursor.rank < 0) this.#cursor = { rank: order.ranks[0] ?? 0, column: 0 };
    this.#drawLegend();
    const means = measure.means(), first = [...order.ranks].sort((one, other) =>
      (means[other] ?? 0) - (means[one] ?? 0)).slice(0, 3).filter((rank) => !Number.isNaN(means[rank]));
    const top = first.map((rank) => `${this.data.ranks.title[rank]} ${measure.text(means[rank] ?? NaN)}`);
    this.canvas.setAttribute("aria-label", worded(WORDING.job.map, { measure: measure.kind.text,
      ranks: counted(measure.rows, "rank"), steps: counted(this.data.steps.length, "step"),
      most: top.join(", ") }));
  }

  destroy() {
    this.rows.destroy();
    hideTip();
  }

  /** @param {Cell | null} cell */
  mark(cell) {
    this.#chosen = cell;
    if (cell) this.#cursor = cell;
    this.rows.surface.redraw();
  }

  #drawLegend() {
    const { kind, low, high, most } = this.#measure, measure = this.#measure;
    const ends = kind.isDiverging ? ["--series-1", "--ground", "--bad"] : ["--ground", "--series-5", "--bad"];
    const top = `${most > high ? "≥ " : ""}${measure.text(high)}`;
    const unknown = !measure.isWhole;
    fill(this.legend,
      h("span", { class: "number" }, kind.isDiverging ? measure.text(-high) : measure.text(low)),
      h("span", { class: "ramp", "aria-hidden": "true",
        style: { background: `linear-gradient(to right, ${ends.map((one) => `var(${one})`).join(", ")})` } }),
      h("span", { class: "number" }, top),
      unknown && h("span", { class: "swatch unknown", "aria-hidden": "true" }),
      unknown && h("span", {}, "not known"),
      h("span", { class: "quiet" }, `${kind.text}: ${kind.help}`));
  }

  /** How wide a column is. @param {Area} area */
  #wide(area) {
    return Math.min(area.width / Math.max(this.#measure.columns, 1), WIDEST_CELL_PX);
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Area} area
   */
  #draw(paint, area) {
    const scale = devicePixelRatio || 1, wide = this.#wide(area) * this.#measure.columns;
    const width = Math.max(1, Math.round(wide * scale)), height = Math.max(1, Math.round(area.height * scale));
    const key = [this.#version, this.rows.element.scrollTop, this.rows.rowPx, width, height, theme()].join();
    if (key !== this.#key) {
      this.#key = key;
      this.#cells(width, height, scale);
    }
    paint.imageSmoothingEnabled = false;
    paint.drawImage(this.#picture, area.left, area.top, width / scale, height / scale);
    const colors = palette();
    if (this.#chosen) this.#frame(paint, area, this.#chosen, colors["text"] ?? "", 1.5);
    if (document.activeElement === this.canvas) {
      this.#frame(paint, area, this.#cursor, colors["focus"] ?? "", 2);
    }
  }

  /**
   * Cells in view as pixels of the screen. Where several share a pixel, that which is farthest from
   * what is usual is seen.
   * @param {number} width
   * @param {number} height
   * @param {number} scale
   */
  #cells(width, height, scale) {
    const { rows } = this, measure = this.#measure, { shades, columns } = measure;
    this.#picture.width = width;
    this.#picture.height = height;
    const paint = contextOf(this.#picture);
    if (!paint) return;
    const image = paint.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const colors = measure.colors();
    const usual = measure.kind.isDiverging ? 127.5 : 0;
    const distance = (/** @type {number} */ shade) => Math.abs(shade - usual);
    const unknown = unknownPixel(palette()["shade"] ?? "");
    const wide = width / columns, gap = wide >= GAP_FROM_PX * scale ? Math.round(scale) : 0;
    const line = new Int16Array(width);
    const [first, last] = rows.seen;
    let filled = -1;
    for (let place = first; place < last; place++) {
      const rank = rows.order.ranks[place] ?? 0;
      const y = (rows.y(place) - rows.area.top) * scale;
      const from = Math.round(y), until = Math.max(Math.round(y + rows.rowPx * scale), from + 1);
      // Rows that share a line of pixels are added to what is there.
      if (from !== filled) line.fill(-2);
      filled = from;
      for (let column = 0; column < columns; column++) {
        const shade = shades[rank * columns + column] ?? -1;
        const begin = Math.floor(column * wide), end = Math.max(Math.floor((column + 1) * wide) - gap, begin + 1);
        for (let x = begin; x < end && x < width; x++) {
          const there = line[x] ?? -2;
          if (there < 0) line[x] = Math.max(shade, there);
          else if (shade >= 0 && distance(shade) > distance(there)) line[x] = shade;
        }
      }
      const rowGap = rows.rowPx >= GAP_FROM_PX ? Math.round(scale) : 0;
      for (let row = Math.max(from, 0); row < Math.max(until - rowGap, from + 1) && row < height; row++) {
        const offset = row * width;
        for (let x = 0; x < width; x++) {
          const shade = line[x] ?? -2;
          if (shade >= 0) pixels[offset + x] = colors[shade] ?? 0;
          else if (shade === -1 && ((x + row) >> 1) % 3 === 0) pixels[offset + x] = unknown;
        }
      }
    }
    paint.putImageData(image, 0, 0);
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Area} area
   * @param {Cell} cell
   * @param {string} color
   * @param {number} width
   */
  #frame(paint, area, { rank, column }, color, width) {
    const place = this.rows.placeOf(rank), wide = this.#wide(area);
    if (place < 0) return;
    const at = Math.min(column, this.#measure.columns - 1);
    paint.strokeStyle = color;
    paint.lineWidth = width;
    paint.strokeRect(area.left + at * wide - 1, this.rows.y(place) - 1, Math.max(wide, 3) + 1,
      Math.max(this.rows.rowPx, 3) + 1);
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Area} area
   */
  #axis(paint, area) {
    const { columns, isOfRank } = this.#measure, wide = this.#wide(area), middle = area.height / 2;
    paint.textAlign = "right";
    paint.fillText(this.#chosenName(), area.left - 8, middle);
    if (isOfRank) {
      paint.textAlign = "left";
      paint.fillText("whole recording", area.left, middle);
      return;
    }
    paint.textAlign = "center";
    const { texts } = this.labels;
    const longest = Math.max(...texts.map((text) => paint.measureText(text).width));
    const every = Math.max(1, Math.ceil((longest + TICK_PX) / wide));
    let until = -Infinity;
    for (let column = 0; column < columns; column += every) {
      const x = area.left + (column + 0.5) * wide;
      const half = paint.measureText(texts[column] ?? "").width / 2;
      if (x + half > area.left + area.width + TICK_PX) break;
      const at = Math.max(x, area.left + half);
      if (at - half < until) continue;
      paint.fillText(texts[column] ?? "", at, middle);
      until = at + half + TICK_PX / 2;
    }
  }

  #chosenName() {
    return this.labels.before ? "step" : "";
  }

  /**
   * @param {MouseEvent} event
   * @returns {Cell | null}
   */
  #at(event) {
    const { area } = this.rows, { offsetX: x, offsetY: y } = event;
    const place = this.rows.placeAt(y), column = Math.floor((x - area.left) / this.#wide(area));
    if (place < 0 || column < 0 || column >= this.#measure.columns) return null;
    return { rank: this.rows.order.ranks[place] ?? 0, column };
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const cell = this.#at(event);
    if (cell) showTip(event.clientX, event.clientY, this.#facts(cell));
    else hideTip();
  }

  /**
   * @param {Cell} cell
   * @returns {string[]}
   */
  #facts({ rank, column }) {
    const { ranks, steps } = this.data, { isOfRank } = this.#measure;
    const title = isOfRank ? ranks.title[rank] ?? "" : `${ranks.title[rank]}, ${steps[column]}`;
    const lines = [...this.measures.values()].filter((one) => !isOfRank || one.isOfRank)
      .map((one) => `${one.kind.text}: ${
        one.text(one.values[rank * one.columns + Math.min(column, one.columns - 1)] ?? NaN)}`);
    const where = [ranks.host[rank], ranks.machine[rank]].filter((one, place, all) =>
      one && all.indexOf(one) === place).join(" on ");
    return [title, ...lines, where].filter(Boolean);
  }

  /** @param {Cell} cell */
  #choose(cell) {
    if (this.#measure.isOfRank) return;
    this.mark(cell);
    this.choose(cell);
  }

  /** @param {KeyboardEvent} event */
  #keydown(event) {
    const { order } = this.rows, place = this.rows.placeOf(this.#cursor.rank);
    const { columns } = this.#measure, page = 10;
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-page, 0], PageDown: [page, 0], Home: [0, -columns], End: [0, columns] };
    const move = moves[event.key];
    if (event.key === "Enter") this.#choose(this.#cursor);
    else if (event.key === "+" || event.key === "-") this.rows.zoom(event.key === "+" ? 1.25 : 0.8);
    else if (move) {
      const fit = (/** @type {number} */ at, /** @type {number} */ many) => Math.max(0, Math.min(at, many - 1));
      const next = fit(place + move[0], order.ranks.length);
      this.#cursor = { rank: order.ranks[next] ?? 0, column: fit(this.#cursor.column + move[1], columns) };
      this.rows.reveal(next);
      announce(this.#facts(this.#cursor).join(", "));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The cells as rows, for export. */
  table() {
    const { ranks, steps } = this.data, all = [...this.measures.values()];
    const timed = all.filter((one) => !one.isOfRank);
    return { columns: ["rank", "host", "step", ...timed.map(({ kind }) => kind.name === "peak" ? "peak_bytes" : `${kind.name}_ps`)],
      rows: ranks.title.flatMap((title, rank) => steps.map((step, column) => [title, ranks.host[rank], step,
        ...timed.map((one) => nullable(one.values[rank * one.columns + column] ?? NaN))])) };
  }

  /** What the picture shows, in a few words. */
  says() {
    return `${count(this.data.ranks.title.length)} ranks × ${count(this.data.steps.length)} steps`;
  }
}

/** @param {number} value */
function nullable(value) {
  return Number.isNaN(value) ? null : value;
}

/**
 * A translucent color as a pixel.
 * @param {string} color `rgba(r, g, b, a)`
 */
function unknownPixel(color) {
  const [red = 0, green = 0, blue = 0] = (color.match(/[\d.]+/g) ?? []).map(Number);
  return ((110 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * Names of steps without what all begin with, where a number is left of each.
 * @param {string[]} names
 */
export function shortened(names) {
  const [one = ""] = names;
  let long = 0;
  while (long < one.length && names.every((name) => name[long] === one[long])) long++;
  while (long > 0 && /\d/.test(one[long - 1] ?? "")) long--;
  const texts = names.map((name) => name.slice(long));
  return texts.every((text) => /^\d+$/.test(text)) ? { before: one.slice(0, long), texts }
    : { before: "", texts: names };
}
