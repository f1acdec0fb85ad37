/** The whole profile in a strip, and on it the window of what is in view, to be dragged. */

import { attachBrush, paintWindow } from "../../core/brush.js";
import { Surface } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { palette } from "../../core/theme.js";
import { GUTTERS } from "./chart.js";
import { paintCurve, seriesColor } from "./curves.js";
import { color } from "./frame.js";

export class Overview {
  /** @param {import("./model.js").Model} model */
  constructor(model) {
    this.model = model;
    this.canvas = h("canvas", { class: "memory-overview", role: "img",
      "aria-label": "The whole profile, with the stretch that is in view above" });
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#draw(context, width, height));
    this.unsubscribe = model.viewport.onChange(() => this.surface.redraw());
    this.brush = { viewport: () => model.viewport, edges: () => /** @type {[number, number]} */ (
      [GUTTERS.left, GUTTERS.left + this.#width]) };
    this.ends = attachBrush(this.canvas, this.brush);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      model.viewport.zoom(Math.exp(event.deltaY * 0.0016));
    }, { passive: false });
  }

  redraw() {
    this.surface.redraw();
  }

  destroy() {
    this.ends();
    this.unsubscribe();
    this.surface.destroy();
  }

  get #width() {
    return Math.max(1, this.surface.width - GUTTERS.left - GUTTERS.right);
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
    paintWindow(context, colors, this.brush, height);
  }
}
