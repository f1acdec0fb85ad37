/** All steps in a strip, and on it the window of those that the chart below shows. */

import { attachBrush, paintWindow } from "../../core/brush.js";
import { Surface } from "../../core/canvas.js";
import { h } from "../../core/dom.js";
import { count } from "../../core/format.js";
import { palette } from "../../core/theme.js";

/** @typedef {import("./source.js").Columns} Columns */

export class StepsOverview {
  /** @type {Columns | null} */
  #columns = null;
  /** @type {[number, number] | null} */
  #chosen = null;

  /**
   * @param {object} chart
   * @param {() => import("../../core/viewport.js").Viewport} chart.viewport
   * @param {number} chart.left where the chart begins
   * @param {number} chart.right
   * @param {(from: number, to: number, done: boolean) => void} chart.measure
   */
  constructor(chart) {
    this.chart = chart;
    this.canvas = h("canvas", { class: "steps-overview", tabindex: 0, role: "application" });
    this.surface = new Surface(this.canvas, (context, width, height) =>
      this.#paint(context, width, height));
    this.brush = { viewport: chart.viewport, measure: chart.measure,
      edges: () => /** @type {[number, number]} */ ([chart.left, this.surface.width - chart.right]) };
    this.ends = attachBrush(this.canvas, this.brush);
  }

  /** @param {Columns} columns of all steps */
  setColumns(columns) {
    this.#columns = columns;
    this.canvas.setAttribute("aria-label", `All ${count(columns.last)} steps; the window on those that the chart below shows is moved by the arrow keys, W and S make it smaller and larger, 0 is all`);
    this.surface.redraw();
  }

  /** @param {[number, number] | null} places that are chosen, both inclusive */
  choose(places) {
    this.#chosen = places;
    this.surface.redraw();
  }

  redraw() {
    this.surface.redraw();
  }

  destroy() {
    this.ends();
    this.surface.destroy();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #paint(context, width, height) {
    const columns = this.#columns, { left, right } = this.chart, colors = palette();
    if (!columns) return;
    const bins = columns.between(0, columns.last);
    // As high as what is usual: one very long step must not flatten all others.
    const means = bins.map(({ mean }) => mean).sort((one, other) => one - other);
    const usual = means[Math.floor(means.length * 0.95)] ?? 1;
    const top = Math.max(1, Math.min(2.5 * usual, Math.max(1, ...bins.map(({ max }) => max))));
    const x = (/** @type {number} */ step) =>
      left + (step / Math.max(columns.last, 1)) * (width - left - right);
    const tall = (/** @type {number} */ ps) => Math.min(ps / top, 1) * (height - 3);
    for (const bin of bins) {
      const from = x(bin.first), wide = Math.max(x(bin.last + 1) - from, 1);
      context.fillStyle = (bin.slow ? colors["bad"] : colors["line"]) ?? "";
      context.fillRect(from, height - tall(bin.max), wide, tall(bin.max));
      context.fillStyle = colors["quiet"] ?? "";
      context.fillRect(from, height - tall(bin.mean), wide, tall(bin.mean));
    }
    if (this.#chosen) {
      const [first, last] = this.#chosen;
      context.fillStyle = colors["accent"] ?? "";
      context.globalAlpha = 0.4;
      context.fillRect(x(first), 0, Math.max(x(last + 1) - x(first), 2), height);
      context.globalAlpha = 1;
    }
    paintWindow(context, colors, this.brush, height);
  }
}
