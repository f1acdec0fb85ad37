/** A part of the comparison that is drawn step by step: the chart, its legend, its table, its export. */

import { fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { bytes, worded } from "../../core/format.js";
import { DataTable } from "../../core/table.js";
import { signed, time3 } from "./changes.js";
import { swatch } from "./pickers.js";
import { StepChart } from "./step_chart.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./series.js").StepwiseData} StepwiseData */
/** @typedef {import("./series.js").Model} Model */
/** @typedef {import("./series.js").Measure} Measure */

const MEASURES = WORDING.compare.measures;

export class Stepwise {
  /** @type {StepChart | null} */
  #chart = null;
  #isGone = false;

  /**
   * @param {Promise<StepwiseData>} coming
   * @param {{kind: "bytes" | "time", title: string, names?: (string | null)[], measure?: Measure, onMeasure?: (measure: Measure) => void}} options
   */
  constructor(coming, options) {
    this.options = options;
    this.measure = options.measure ?? "end";
    this.element = h("figure", { class: "courses", hidden: true });
    void this.#load(coming);
  }

  destroy() {
    this.#isGone = true;
    this.#chart?.destroy();
  }

  /** @param {Promise<StepwiseData>} coming */
  async #load(coming) {
    try {
      const data = await coming;
      if (!this.#isGone) this.#draw(data);
    } catch {
      // What is compared says what is wrong.
    }
  }

  /** @param {StepwiseData} data */
  #draw(data) {
    const { kind, title, names = [] } = this.options, isMemory = kind === "bytes";
    const model = isMemory ? data.memory(names, this.measure) : data.time();
    this.#chart?.destroy();
    this.element.hidden = !model;
    if (!model) return;
    const format = isMemory ? bytes : time3;
    const label = labelOf(model, isMemory ? "Memory in use" : title, format);
    this.element.setAttribute("aria-label", label);
    this.#chart = new StepChart(model, kind, format, label);
    const table = h("details", {}, h("summary", {}, "As a table"));
    table.addEventListener("toggle", () => {
      if (table.open && table.childElementCount < 2) table.append(tableOf(model, kind, title));
    });
    fill(this.element, h("div", { class: "row-of legend" },
      ...model.lines.map((line) => h("span", { class: "row-of" }, swatch(line.place), line.title)),
      isMemory && model.bySteps && this.#choice(data), h("span", { class: "grow" }),
      exportMenu({ name: `comparison_${title}`, rows: () => rowsOf(model, kind),
        picture: () => this.#chart?.canvas ?? null })),
    this.#chart.canvas, h("p", { class: "quiet" }, `${differenceOf(model, format)} ${data.alignment}`.trim()),
    table);
  }

  /** @param {StepwiseData} data */
  #choice(data) {
    const select = h("select", { "aria-label": "What of each step" },
      ...Object.entries(MEASURES).map(([value, text]) =>
        h("option", { value, selected: value === this.measure }, text)));
    select.addEventListener("change", () => {
      this.measure = /** @type {Measure} */ (select.value);
      this.options.onMeasure?.(this.measure);
      this.#draw(data);
      this.element.querySelector("select")?.focus();
    });
    return select;
  }
}

/**
 * @param {Model} model
 * @param {string} what
 * @param {import("./changes.js").Format} format
 */
function labelOf(model, what, format) {
  const of = model.lines.map(({ title, high }) =>
    `${title}: at most ${format(Math.max(...high.map((one) => one ?? 0)))}`);
  return `${what} by ${model.bySteps ? "step" : "time"}. ${of.join("; ")}. `
    + differenceOf(model, format);
}

/**
 * The difference where it begins and ends: of a leak it grows.
 * @param {Model} model
 * @param {import("./changes.js").Format} format
 */
export function differenceOf({ differences, at }, format) {
  return differences.map(({ title, value }) => {
    const known = [...value.keys()].filter((place) => value[place] !== null);
    const first = known[0], last = known.at(-1);
    if (first === undefined || last === undefined) return "";
    return worded(WORDING.compare.difference, { title, from: at[first] ?? "", to: at[last] ?? "",
      first: signed(value[first] ?? 0, format), last: signed(value[last] ?? 0, format) });
  }).filter(Boolean).join(" ");
}

/**
 * @param {Model} model
 * @param {"bytes" | "time"} kind
 * @returns {import("../../core/exporting.js").Rows}
 */
function rowsOf({ at, lines, differences, bySteps }, kind) {
  const unit = kind === "bytes" ? "bytes" : "ps";
  const columns = [bySteps ? "step" : "time", ...lines.flatMap(({ title }) =>
    [`${title} value ${unit}`, `${title} least ${unit}`, `${title} most ${unit}`]),
  ...differences.map(({ title }) => `${title} less Before ${unit}`)];
  const rows = at.map((name, place) => [name, ...lines.flatMap(({ value, low, high }) =>
    [value[place], low[place], high[place]]), ...differences.map(({ value }) => value[place])]);
  return { columns, rows };
}

/**
 * @param {Model} model
 * @param {"bytes" | "time"} kind
 * @param {string} title
 */
function tableOf({ at, lines, differences, bySteps }, kind, title) {
  const format = kind === "bytes" ? bytes : time3;
  const table = new DataTable({ label: `${title} by step`, height: "20rem", columns: [
    { key: "place", title: bySteps ? "Step" : "Time", kind: "count", width: "7rem",
      cell: (row) => at[row.place]?.replace("step ", "") ?? "" },
    ...lines.map((line, index) => ({ key: `line${index}`, title: line.title, kind, width: "9rem" })),
    ...differences.map((one, index) => ({ key: `less${index}`, title: `${one.title} less Before`, kind,
      width: "11rem", cell: (/** @type {any} */ row) => (row[`less${index}`] === null ? "–"
        : signed(row[`less${index}`], format)) })),
  ] });
  table.setRows(at.map((_, place) => Object.fromEntries([["place", place],
    ...lines.map(({ value }, index) => [`line${index}`, value[place] ?? null]),
    ...differences.map(({ value }, index) => [`less${index}`, value[place] ?? null])])));
  return table.element;
}
