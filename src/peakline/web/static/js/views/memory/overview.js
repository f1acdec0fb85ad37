/** The whole profile in a strip, and on it the window of what is in view, to be dragged. */

import { Surface } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { palette } from "../../core/theme.js";
import { GUTTERS } from "./chart.js";
import { paintCurve, seriesColor } from "./curves.js";
import { color } from "./frame.js";

const HANDLE = 6;
const LEAST = 8;

export class Overview {
  /** @type {{kind: "move" | "from" | "to", x: number, from: number, to: number} | null} */
  #drag = null;

  /** @param {import("./model.js").Model} model */
  constructor(model) {
    this.model = model;
    this.canvas = h("canvas", { class: "memory-overview", role: "img",
      "aria-label": "The whole profile, with the stretch that is in view above" });
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#draw(context, width, height));
    this.ends = new AbortController();
    this.unsubscribe = model.viewport.onChange(() => this.surface.redraw());
    const options = { signal: this.ends.signal };
    this.canvas.addEventListener("pointerdown", (event) => this.#begin(event), options);
    this.canvas.addEventListener("pointermove", (event) => this.#move(event), options);
    for (const over of /** @type {const} */ (["pointerup", "pointercancel"])) {
      this.canvas.addEventListener(over, () => void (this.#drag = null), options);
    }
    this.canvas.addEventListener("dblclick", () => model.viewport.showAll(), options);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      model.viewport.zoom(Math.exp(event.deltaY * 0.0016));
    }, { ...options, passive: false });
  }

  redraw() {
    this.surface.redraw();
  }

  destroy() {
    this.ends.abort();
    this.unsubscribe();
    this.surface.destroy();
  }

  get #width() {
    return Math.max(1, this.surface.width - GUTTERS.left - GUTTERS.right);
  }

  /** The window's edges in pixels, wide enough to be taken hold of. @returns {[number, number]} */
  #window() {
    const { viewport: { first, last, from, to } } = this.model;
    const x = (/** @type {number} */ at) =>
      GUTTERS.left + ((at - first) / (last - first)) * this.#width;
    const [begin, end] = [x(from), x(to)], more = Math.max(0, (LEAST - (end - begin)) / 2);
    return [begin - more, end + more];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #draw(context, width, height) {
    const { model } = this, { viewport, whole, shown } = model;
    const colors = palette();
    let high = 1;
    for (const { peak_bytes: peak } of shown) high = Math.max(high, peak);
    const everything = /** @type {import("../../core/viewport.js").Viewport} */ ({
      from: viewport.first, to: viewport.last, span: viewport.last - viewport.first,
      x: (/** @type {number} */ at, /** @type {number} */ wide) =>
        ((at - viewport.first) / (viewport.last - viewport.first)) * wide,
    });
    /** @type {import("./frame.js").Frame} */
    const frame = { context, colors, viewport: everything, left: GUTTERS.left,
      right: width - GUTTERS.right, top: 3, bottom: height - 2, low: 0, high };
    for (const { name, place } of shown) {
      paintCurve(frame, whole, whole, name, seriesColor(colors, place), shown.length === 1);
    }
    const moment = model.shownMoment;
    if (moment !== null) {
      context.fillStyle = color(colors, "accent");
      context.fillRect(GUTTERS.left + everything.x(moment, this.#width) - 0.75, 0, 1.5, height);
    }
    const [begin, end] = this.#window();
    context.fillStyle = color(colors, "ground");
    context.globalAlpha = 0.6;
    context.fillRect(GUTTERS.left, 0, Math.max(0, begin - GUTTERS.left), height);
    context.fillRect(end, 0, Math.max(0, width - GUTTERS.right - end), height);
    context.globalAlpha = 1;
    context.strokeStyle = color(colors, "accent");
    context.strokeRect(begin + 0.5, 0.5, end - begin - 1, height - 1);
    context.fillStyle = color(colors, "accent");
    context.fillRect(begin - 1, height / 2 - 8, 3, 16);
    context.fillRect(end - 2, height / 2 - 8, 3, 16);
  }

  /** @param {PointerEvent} event */
  #begin(event) {
    if (event.button !== 0) return;
    const { viewport } = this.model, x = event.offsetX, [begin, end] = this.#window();
    this.canvas.setPointerCapture(event.pointerId);
    const kind = Math.abs(x - begin) <= HANDLE ? "from" : Math.abs(x - end) <= HANDLE ? "to" : "move";
    if (kind === "move" && (x < begin || x > end)) {
      const at = this.#time(x);
      viewport.show(at - viewport.span / 2, at + viewport.span / 2);
    }
    this.#drag = { kind, x, from: viewport.from, to: viewport.to };
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const { viewport } = this.model, x = event.offsetX;
    const [begin, end] = this.#window();
    const isEdge = Math.min(Math.abs(x - begin), Math.abs(x - end)) <= HANDLE;
    this.canvas.style.cursor = isEdge || (this.#drag && this.#drag.kind !== "move")
      ? "ew-resize" : x > begin && x < end ? "grab" : "pointer";
    if (!this.#drag) return;
    const { kind, from, to } = this.#drag;
    const by = this.#time(x) - this.#time(this.#drag.x);
    if (kind === "move") viewport.show(from + by, to + by);
    else if (kind === "from") viewport.show(Math.min(from + by, to - 1), to);
    else viewport.show(from, Math.max(to + by, from + 1));
  }

  /** @param {number} x */
  #time(x) {
    const { first, last } = this.model.viewport;
    return first + ((x - GUTTERS.left) / this.#width) * (last - first);
  }
}
