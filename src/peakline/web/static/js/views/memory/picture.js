/** The upper part of the view: memory in use over time, how it is drawn, and what its colors are. */

import { exportMenu } from "../../core/exporting.js";
import { fill, h } from "../../core/dom.js";
import { failed } from "../../core/states.js";
import { makeBars } from "./bars.js";
import { Chart } from "./chart.js";
import { toolCommand } from "../../core/command.js";
import { makeLegend } from "./legend.js";
import { makeLayerLegend, makeModes } from "./modes.js";
import { Overview } from "./overview.js";
import { shownWith } from "./places.js";

/** @typedef {import("./live.js").Change} Change */
/**
 * @typedef {object} PictureWishes
 * @property {(from: number, to: number, allocator: string) => void} choose
 * @property {(event: KeyboardEvent) => boolean} key
 * @property {() => void} toPeak
 */

export class Picture {
  /** What the profile has, for the buttons. */
  #has = { isDescribed: false, hasStacks: false, hasReserved: /** @type {boolean | null} */ (null),
    programEvents: /** @type {string[] | null} */ (null) };

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {Change} change
   * @param {PictureWishes} wishes
   */
  constructor(context, model, change, wishes) {
    this.model = model;
    this.legend = makeLegend(model, {
      choose: (allocator) => change({ allocator, off: [], ...shownWith(allocator, model) }),
      show: (shown) => change({ shown }),
    });
    const trouble = h("div");
    this.chart = model.isMoment ? null : new Chart(context, model, {
      choose: wishes.choose, key: wishes.key,
      chooseBuffer: (buffer, at) => {
        const isSame = buffer === model.state.buffer;
        change({ buffer: isSame ? null : buffer, ...(at === null ? {} : { at }), group: "buffer" });
      },
      measure: (a, b, isDone) => {
        model.range = isDone ? null : [a, b];
        if (isDone) change({ a, b }, true);
        else this.chart?.surface.redraw();
      },
      drawn: () => this.#found(),
      failed: (error) => fill(trouble, failed(error, () => {
        fill(trouble);
        this.chart?.redraw();
      })),
    });
    this.overview = this.chart ? new Overview(model) : null;
    this.bars = this.chart ? null : makeBars(model, (allocator) => change({ allocator }));
    this.fit = h("button", { type: "button", title: "Let the chart's height begin and end with what "
      + "is in view (f)", onclick: () => change({ fit: !model.state.fit }) }, "Fit height");
    const { chart } = this;
    this.modes = chart && makeModes(model, change);
    this.layers = chart && makeLayerLegend(chart.layers, chart.polygons, model, change);
    const head = h("h2", { id: "memory-heading" }, "Memory in use");
    this.element = h("section", { class: "panel stack memory-picture", "aria-labelledby": head.id },
      h("div", { class: "row-of" }, head, this.modes?.element, h("span", { class: "grow" }),
        chart && exportMenu({ name: `${context.session}-memory`, picture: () => chart.canvas,
          json: () => this.#answer(context), command: () => this.#command(context) })),
      chart && h("div", { class: "row-of memory-top" }, this.legend.element,
        h("div", { class: "row-of memory-moves" },
          h("div", { class: "row-of memory-zoom", role: "group", "aria-label": "Zoom" },
            h("button", { type: "button", title: "w", "aria-label": "Zoom in", onclick: () => this.#zoom(0.5) }, "+"),
            h("button", { type: "button", title: "s", "aria-label": "Zoom out", onclick: () => this.#zoom(2) }, "−")),
          h("button", { type: "button", onclick: wishes.toPeak }, "To the peak"), this.fit,
          h("button", { type: "button", onclick: () => model.viewport.showAll() }, "Show all"))),
      this.layers?.element, trouble, chart?.canvas,
      this.overview?.canvas, this.bars?.element);
  }

  /**
   * What the profile says of buffers.
   * @param {boolean} isDescribed
   * @param {boolean} hasStacks
   */
  know(isDescribed, hasStacks) {
    this.#has = { ...this.#has, isDescribed, hasStacks };
    this.modes?.redraw(this.#has);
  }

  redraw() {
    this.fit.setAttribute("aria-pressed", String(this.model.state.fit));
    this.legend.redraw();
    this.modes?.redraw(this.#has);
    this.layers?.redraw();
    this.bars?.redraw();
    this.chart?.redraw();
    this.overview?.redraw();
  }

  destroy() {
    this.chart?.destroy();
    this.overview?.destroy();
  }

  /** What is looked at stays where it is, where it is in view. @param {number} factor */
  #zoom(factor) {
    const { viewport, shownMoment: at } = this.model;
    viewport.zoom(factor, at !== null && at >= viewport.from && at <= viewport.to ? at : undefined);
  }

  #found() {
    const answer = this.chart?.layers.known;
    if (answer) {
      this.#has.hasReserved = answer.reserved !== null;
      this.#has.programEvents = answer.program_events;
    }
    this.modes?.redraw(this.#has);
    this.layers?.redraw();
  }

  /** What is drawn, as parameters of the tool that says it. @returns {[string, Record<string, any>]} */
  #question() {
    const { viewport, allocator, state } = this.model;
    const stretch = { allocator: allocator?.name, start_ps: viewport.from, end_ps: viewport.to,
      width: Math.min(this.chart?.pixels ?? 1000, 2048) };
    if (state.draw === "buffers") return ["memory_polygons", stretch];
    return ["memory_stack", { ...stretch, group: state.by,
      size: state.requested ? "requested" : "allocated" }];
  }

  /** @param {import("../../shell/context.js").Context} context */
  async #answer(context) {
    const [tool, query] = this.#question();
    return (await context.tool(tool, query)).data;
  }

  /** @param {import("../../shell/context.js").Context} context */
  #command(context) {
    const [tool, query] = this.#question();
    return toolCommand(context, tool, query);
  }
}
