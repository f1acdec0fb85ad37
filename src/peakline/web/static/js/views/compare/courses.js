/** The course of an allocator's memory in both sessions, one over the other. */

import { binary, json, sessionPath } from "../../core/api.js";
import { byteMarks } from "../../core/axis.js";
import { readColumns } from "../../core/columns.js";
import { h } from "../../core/dom.js";
import { bytes, time } from "../../core/format.js";
import { drawPlot, dropPlot } from "../../core/plot.js";
import { onTheme, palette } from "../../core/theme.js";

const PIXELS = 800;
const HEIGHT_PX = 220;
const MEMORY = "memory in use";

/** @typedef {{name: string, allocator: string, session: string, host: string, duration: number}} Course */
/** @typedef {Course & {high: Float64Array}} Drawn */

export class Courses {
  /** @type {Drawn[]} */
  #drawn = [];
  #endTheme = () => {};

  /**
   * @param {any} one of `allocators`
   * @param {any} data
   * @param {Record<string, string>} query
   * @param {AbortSignal} signal
   */
  constructor(one, data, query, signal) {
    this.root = query["root"] ?? "";
    this.signal = signal;
    /** @type {Course[]} */
    this.courses = [];
    for (const [side, session, host, name] of /** @type {const} */ ([
      ["before", query["first"], query["first_host"], "Before"],
      ["after", query["second"], query["second_host"], "After"],
    ])) {
      const duration = data[side].duration_ps;
      if (one[side] && duration > 0 && session) {
        this.courses.push({ name, allocator: one[side].allocator, session, host: host ?? "", duration });
      }
    }
    this.element = h("figure", { class: "courses", hidden: true });
  }

  /** Draws what there is; profiles that have no course over time have no chart. */
  async load() {
    const found = await Promise.allSettled(this.courses.map((course) => this.#ask(course)));
    if (this.signal.aborted) return;
    this.#drawn = found.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
    if (!this.#drawn.length) return;
    this.element.hidden = false;
    this.#endTheme = onTheme(() => void this.#draw());
    await this.#draw();
  }

  destroy() {
    this.#endTheme();
    void dropPlot(this.element);
  }

  /**
   * @param {Course} course
   * @returns {Promise<Drawn | null>}
   */
  async #ask(course) {
    const path = sessionPath(course.session, "tools", "timeline");
    const query = { root: this.root, host: course.host, view: "counter", start_ps: 0,
      end_ps: course.duration, width: PIXELS };
    const { data } = await json(path, { query: { ...query, width: 1 }, signal: this.signal });
    const place = data.counter_name.findIndex((/** @type {string} */ name, /** @type {number} */ at) =>
      name === course.allocator && data.counter_group[at] === MEMORY);
    if (place < 0) return null;
    const answer = await binary(path, { query: { ...query, lines: place, format: "bin" },
      signal: this.signal });
    return { ...course, high: readColumns(answer.data)["high"] };
  }

  async #draw() {
    if (this.signal.aborted) return;
    const colors = palette();
    const styles = { Before: { color: colors["series-2"], dash: "dot" },
      After: { color: colors["series-1"], dash: "solid" } };
    const most = Math.max(...this.#drawn.map(({ high }) => top(high)));
    const ticks = byteMarks(most * 1.05, 4);
    const traces = this.#drawn.map(({ name, high, duration }) => ({
      type: "scatter", mode: "lines", name, x: [...high.keys()].map((at) => (100 * at) / PIXELS),
      y: [...high], line: { ...styles[/** @type {"Before" | "After"} */ (name)], width: 1.5, shape: "hv" },
      text: [...high].map((value, at) => `${name}: ${bytes(value)} at ${time((duration * at) / PIXELS)}`),
      hoverinfo: "text",
    }));
    this.element.setAttribute("aria-label", "Memory in use over each profile's duration. "
      + this.#drawn.map(({ name, high }) => `${name}: at most ${bytes(top(high))}`).join("; "));
    await drawPlot(this.element, traces, {
      height: HEIGHT_PX, hovermode: "x unified", showlegend: true,
      legend: { orientation: "h", x: 0, y: 1.15 }, margin: { l: 70, r: 30, t: 24, b: 40 },
      xaxis: { title: { text: "share of the profile's duration" }, ticksuffix: "%",
        range: [0, 100], dtick: 20 },
      yaxis: { title: { text: "memory in use" }, rangemode: "tozero", tickvals: ticks,
        ticktext: ticks.map(bytes) },
    });
  }
}

/** @param {Float64Array} values NaN before the first */
function top(values) {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}
