/** How fast ops are against what the device can do: operations a second over operations per byte. */

import { Surface } from "../../core/canvas.js";
import { announce, h } from "../../core/dom.js";
import { percent, time, worded } from "../../core/format.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";

const LEFT = 92, RIGHT = 12, TOP = 14, BOTTOM = 34, NEAR_PX = 12;
const LEAST_PX = 3, MOST_PX = 16, AIR = 0.3, APART_PX = 34;

/** @typedef {import("./ops_part.js").Op} Op */
/** @typedef {{reason: string | null, chip: string, flops_per_s: number | null, bytes_per_s: number | null}} Peaks */
/** @typedef {{op: Op, intensity: number, rate: number, size: number}} Dot */

export class Roofline {
  /** @type {Dot[]} those with most time first */
  #dots = [];
  /** @type {Peaks | null} */
  #peaks = null;
  /** @type {Op | null} */
  #chosen = null;
  #active = -1;

  /** @param {(op: Op) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.canvas = h("canvas", { class: "roofline", tabindex: 0, role: "application" });
    this.surface = new Surface(this.canvas, (paint, width, height) => this.#paint(paint, width, height));
    this.note = h("p", { class: "quiet" });
    this.element = h("div", { class: "stack" }, this.canvas, this.note);
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const dot = this.#at(event);
      if (dot) this.choose(dot.op);
    });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * @param {Op[]} ops
   * @param {Peaks} peaks
   */
  show(ops, peaks) {
    this.#peaks = peaks;
    const known = ops.filter((op) => op.flops && op.bytes_accessed && op.total_ps > 0);
    const most = known.reduce((sum, op) => Math.max(sum, op.self_ps), 1);
    this.#dots = known.map((op) => ({ op,
      intensity: (op.flops ?? 0) / (op.bytes_accessed ?? 1),
      rate: ((op.flops ?? 0) / op.total_ps) * 1e12,
      size: LEAST_PX + (MOST_PX - LEAST_PX) * Math.sqrt(op.self_ps / most),
    })).sort((one, other) => other.op.self_ps - one.op.self_ps);
    this.canvas.hidden = !known.length;
    const { reason, chip } = peaks, isKnown = peaks.flops_per_s && peaks.bytes_per_s;
    const says = WORDING.roofline;
    this.note.textContent = worded(reason ? says.reason : !known.length ? says.none
      : isKnown ? says.ops : says.no_roof, { reason: reason ?? "", ops: known.length, chip });
    this.canvas.setAttribute("aria-label", `Roofline of ${known.length} ops; most time: ${
      this.#dots.slice(0, 3).map((dot) => this.#facts(dot).join(", ")).join("; ")
    }. Left and right go through the ops by time, Enter chooses one.`);
    this.#active = -1;
    this.surface.redraw();
  }

  /** @param {Op | null} op */
  select(op) {
    this.#chosen = op;
    this.surface.redraw();
  }

  destroy() {
    this.surface.destroy();
    hideTip();
  }

  /** Ranges of both axes as logarithms, with air around all dots and the ridge. */
  #scales() {
    const { width, height } = this.surface;
    const peak = this.#peaks?.flops_per_s, memory = this.#peaks?.bytes_per_s;
    const xs = this.#dots.map(({ intensity }) => Math.log10(intensity));
    const ys = this.#dots.map(({ rate }) => Math.log10(rate));
    if (peak && memory) {
      xs.push(Math.log10(peak / memory));
      ys.push(Math.log10(peak));
    }
    const range = (/** @type {number[]} */ all) => {
      const from = all.reduce((least, one) => Math.min(least, one), Infinity);
      const to = all.reduce((most, one) => Math.max(most, one), -Infinity);
      return /** @type {[number, number]} */ ([from - AIR, Math.max(to, from + 1) + AIR]);
    };
    const x = range(xs), y = range(ys);
    return { x, y,
      xOf: (/** @type {number} */ at) => LEFT + ((Math.log10(at) - x[0]) / (x[1] - x[0]))
        * (width - LEFT - RIGHT),
      yOf: (/** @type {number} */ at) => height - BOTTOM - ((Math.log10(at) - y[0]) / (y[1] - y[0]))
        * (height - TOP - BOTTOM) };
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {number} width
   * @param {number} height
   */
  #paint(paint, width, height) {
    if (!this.#dots.length) return;
    const colors = palette(), { x, y, xOf, yOf } = this.#scales();
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    paint.textAlign = "right";
    let before = Infinity;
    for (let power = Math.ceil(y[0]); power <= y[1]; power++) {
      const at = yOf(10 ** power);
      paint.fillStyle = colors["line"] ?? "";
      paint.fillRect(LEFT, at, width - LEFT - RIGHT, 1);
      if (before - at < 16) continue;
      before = at;
      paint.fillStyle = colors["quiet"] ?? "";
      paint.fillText(rateText(10 ** power), LEFT - 6, at);
    }
    paint.textAlign = "center";
    before = -Infinity;
    for (let power = Math.ceil(x[0]); power <= x[1]; power++) {
      const at = xOf(10 ** power);
      paint.fillStyle = colors["line"] ?? "";
      paint.fillRect(at, TOP, 1, height - TOP - BOTTOM);
      if (at - before < APART_PX) continue;
      before = at;
      paint.fillStyle = colors["quiet"] ?? "";
      paint.fillText(plain(10 ** power), at, height - BOTTOM + 10);
    }
    paint.fillStyle = colors["quiet"] ?? "";
    paint.fillText("FLOP per byte", LEFT + (width - LEFT - RIGHT) / 2, height - 8);
    this.#paintRoof(paint, colors, width);
    for (const dot of [...this.#dots].reverse()) {
      const isChosen = dot.op === this.#chosen, isActive = this.#dots[this.#active] === dot;
      paint.beginPath();
      paint.arc(xOf(dot.intensity), yOf(dot.rate), dot.size, 0, 2 * Math.PI);
      paint.globalAlpha = 0.55;
      paint.fillStyle = colors[dot.op.side === "device" ? "series-3" : "series-1"] ?? "";
      paint.fill();
      paint.globalAlpha = 1;
      paint.lineWidth = isChosen || isActive ? 3 : 1;
      paint.strokeStyle = colors[isActive ? "focus" : isChosen ? "text" : "panel"] ?? "";
      paint.stroke();
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {number} width
   */
  #paintRoof(paint, colors, width) {
    const peak = this.#peaks?.flops_per_s, memory = this.#peaks?.bytes_per_s;
    if (!peak || !memory) return;
    const { x, xOf, yOf } = this.#scales(), ridge = peak / memory, from = 10 ** x[0];
    paint.save();
    paint.beginPath();
    paint.rect(LEFT, 0, width - LEFT - RIGHT, this.surface.height - BOTTOM);
    paint.clip();
    paint.beginPath();
    paint.moveTo(xOf(from), yOf(from * memory));
    paint.lineTo(xOf(ridge), yOf(peak));
    paint.lineTo(width - RIGHT, yOf(peak));
    paint.strokeStyle = colors["text"] ?? "";
    paint.lineWidth = 2;
    paint.stroke();
    paint.restore();
    paint.textAlign = "right";
    paint.fillStyle = colors["text"] ?? "";
    paint.fillText(worded(WORDING.roofline.ridge, { rate: rateText(peak), at: plain(ridge) }), width - RIGHT - 4,
      yOf(peak) - 9);
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const box = this.canvas.getBoundingClientRect(), { xOf, yOf } = this.#scales();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const away = (/** @type {Dot} */ dot) =>
      Math.hypot(xOf(dot.intensity) - x, yOf(dot.rate) - y) - dot.size;
    const near = this.#dots.filter((dot) => away(dot) < NEAR_PX);
    return near.sort((one, other) => away(one) - away(other))[0] ?? null;
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const dot = this.#dots.length ? this.#at(event) : null;
    this.canvas.style.cursor = dot ? "pointer" : "default";
    if (dot) showTip(event.clientX, event.clientY, this.#facts(dot));
    else hideTip();
  }

  /**
   * @param {Dot} dot
   * @returns {string[]}
   */
  #facts({ op, intensity, rate }) {
    const peak = this.#peaks?.flops_per_s, memory = this.#peaks?.bytes_per_s;
    const roof = peak && memory ? Math.min(peak, intensity * memory) : 0;
    return [op.op, worded(WORDING.roofline.op, { rate: rateText(rate), at: plain(intensity) }),
      ...(roof ? [worded(WORDING.roofline.share, { share: percent(rate / roof),
        by: peak && memory && intensity < peak / memory ? "memory" : "compute" })] : []),
      `self time ${time(op.self_ps)}`];
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const dot = this.#dots[this.#active];
    if (event.key === "Enter" && dot) {
      this.choose(dot.op);
    } else if (step) {
      this.#active = Math.max(0, Math.min(this.#active + step, this.#dots.length - 1));
      const result = this.#dots[this.#active];
      if (result) announce(this.#facts(result).join(", "));
      this.surface.redraw();
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** @type {readonly (readonly [number, string])[]} */
const UNITS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** @param {number} value operations per second */
function rateText(value) {
  const [unit, name] = UNITS.find(([size]) => value >= size) ?? [1, ""];
  return `${Number((value / unit).toPrecision(3))} ${name}FLOP/s`;
}

/** @param {number} value */
function plain(value) {
  return value >= 1e5 || value < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}
