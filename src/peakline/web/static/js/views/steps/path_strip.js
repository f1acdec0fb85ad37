/** The critical path drawn as one strip over the step's time. */

import { contextOf } from "../../core/canvas.js";
import { timeMarks } from "../../core/axis.js";
import { h } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { onTheme, palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./critical_part.js").Path} Path */
/** @typedef {import("./critical_part.js").Segment} Segment */

const HEIGHT = 58, BAR = 32;

/** @type {Record<string, import("../../core/parts.js").Part>} */
const KINDS = {
  op: { name: "op", text: "op", color: "series-3", pattern: "" },
  transfer: { name: "transfer", text: "transfer", color: "series-2", pattern: "" },
  launch: { name: "launch", text: "launch", color: "series-6", pattern: "" },
  host: { name: "host", text: "host", color: "series-1", pattern: "" },
  input: { name: "input", text: "next batch", color: "series-7", pattern: "" },
  wait: { name: "wait", text: "blind wait", color: "series-8", pattern: "/" },
  nothing: { name: "nothing", text: WORDING.path.nothing, color: "line", pattern: "" },
};

/** @type {Record<string, string>} */
const WHYS = {
  start: "the step's begin", data: "its input", control: "control edge", order: "stream's order",
  transfer: "transfer", launch: "host's call", thread: "same thread", context: "handed over",
  release: "what released it", guess: "guess: ended last", source: "graph's begin",
};

/** @param {string} kind */
export function kindLook(kind) {
  return KINDS[kind] ?? { name: kind, text: kind, color: "series-8", pattern: "x" };
}

/** @param {string} why */
export function whyText(why) {
  return WHYS[why] ?? why;
}

export class PathStrip {
  #drawn = 0;

  /**
   * @param {Path} path
   * @param {(segment: Segment) => string} link
   */
  constructor(path, link) {
    this.path = path;
    this.canvas = h("canvas", { role: "img", "aria-label": "The critical path over the step's "
      + "time; the table below has its pieces." });
    this.element = h("div", { class: "panel canvas-box" }, this.canvas);
    const resize = new ResizeObserver(() => this.draw());
    resize.observe(this.element);
    const endTheme = onTheme(() => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const segment = this.#at(event.offsetX);
      if (segment) location.hash = link(segment);
    });
    this.destroy = () => {
      resize.disconnect();
      endTheme();
      cancelAnimationFrame(this.#drawn);
      hideTip();
    };
  }

  draw() {
    if (this.#drawn) return;
    this.#drawn = requestAnimationFrame(() => {
      this.#drawn = 0;
      this.#paint();
    });
  }

  #width() {
    const style = getComputedStyle(this.element);
    return Math.max(1, this.element.clientWidth
      - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
  }

  #paint() {
    const ratio = devicePixelRatio || 1, wide = this.#width();
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const paint = contextOf(this.canvas);
    if (!paint) return;
    paint.scale(ratio, ratio);
    const colors = palette(), { start_ps: begin, end_ps: end } = this.path;
    const x = (/** @type {number} */ at) => ((at - begin) / Math.max(end - begin, 1)) * wide;
    paint.fillStyle = colors["shade"] ?? "";
    paint.fillRect(0, 0, wide, BAR);
    for (const segment of this.path.segments) {
      const from = x(segment.start_ps), to = x(segment.end_ps);
      paint.fillStyle = colors[kindLook(segment.kind).color] ?? "";
      paint.fillRect(from, 0, Math.max(to - from, 0.5), BAR);
      if (to - from > 4) {
        paint.fillStyle = colors["panel"] ?? "";
        paint.fillRect(to - 1, 0, 1, BAR);
      }
      if (to - from > 60) this.#label(paint, colors, segment.op, from, to);
    }
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "top";
    paint.fillStyle = colors["quiet"] ?? "";
    for (const { time: at, text } of timeMarks(0, end - begin, wide)) {
      const left = x(begin + at);
      paint.fillRect(left, BAR, 1, 5);
      paint.textAlign = left < 20 ? "left" : left > wide - 40 ? "right" : "center";
      paint.fillText(at ? text : "0", left, BAR + 8);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} paint
   * @param {Record<string, string>} colors
   * @param {string} text
   * @param {number} from
   * @param {number} to
   */
  #label(paint, colors, text, from, to) {
    paint.save();
    paint.beginPath();
    paint.rect(from + 3, 6, to - from - 8, BAR - 12);
    paint.clip();
    paint.font = "12px system-ui, sans-serif";
    const wide = Math.min(paint.measureText(text).width + 8, to - from - 8);
    paint.fillStyle = colors["panel"] ?? "";
    paint.fillRect(from + 4, 7, wide, BAR - 14);
    paint.fillStyle = colors["text"] ?? "";
    paint.textBaseline = "middle";
    paint.fillText(text, from + 8, BAR / 2 + 1);
    paint.restore();
  }

  /** @param {number} x */
  #at(x) {
    const { start_ps: begin, end_ps: end, segments } = this.path;
    const at = begin + (x / this.#width()) * (end - begin);
    return segments.find((segment) => segment.start_ps <= at && at < segment.end_ps);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const segment = this.#at(event.offsetX);
    if (!segment) {
      hideTip();
      return;
    }
    showTip(event.clientX, event.clientY, [segment.op,
      `${kindLook(segment.kind).text}, ${time(segment.own_ps)}`,
      `came after ${whyText(segment.why)}`,
      [segment.device, segment.line_name].filter(Boolean).join(" › ")]);
  }
}
