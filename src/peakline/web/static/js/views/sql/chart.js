/** A chart of the rows of a query: which column against which, as bars, a line or points. */

import { h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { kindOf, valueText } from "../../core/kinds.js";
import { XyChart } from "../../core/xy.js";

const KINDS = { "": "No chart", bar: "Bars", line: "Line", scatter: "Points" };
const HEIGHT = 360;
/** So many names are read beside bars; of more only some, below them. */
const LABELS = 30;

export class ResultChart {
  #kind = "";
  #x = "";
  #y = "";

  /**
   * @param {import("./query.js").Found} result
   * @param {(changes: Record<string, string | null>) => void} change of the address
   */
  constructor(result, change) {
    this.found = result;
    this.change = change;
    const numbers = result.names.filter((name) => result.rows.some((row) =>
      typeof row[name] === "number"));
    this.numbers = numbers;
    this.kind = select("chart-kind", Object.entries(KINDS));
    this.x = select("chart-x", result.names.map((name) => [name, name]));
    this.y = select("chart-y", numbers.map((name) => [name, name]));
    for (const field of [this.kind, this.x, this.y]) {
      field.addEventListener("change", () => this.#chosen());
    }
    this.chart = new XyChart(HEIGHT);
    this.menu = exportMenu({ name: "query_chart", picture: () => this.chart.picture });
    this.chart.element.hidden = this.menu.hidden = true;
    this.axes = h("span", { class: "row-of", hidden: true },
      h("label", { for: "chart-x" }, "across"), this.x,
      h("label", { for: "chart-y" }, "up"), this.y);
    this.element = h("div", { class: "stack" },
      numbers.length > 0 && h("div", { class: "row-of" },
        h("label", { for: "chart-kind" }, "Chart"), this.kind, this.axes, this.menu),
      this.chart.element);
  }

  /** @param {Record<string, string>} params */
  update(params) {
    const { names, rows } = this.found;
    this.#kind = params["chart"] && Object.hasOwn(KINDS, params["chart"]) ? params["chart"] : "";
    this.#y = this.numbers.includes(params["y"] ?? "") ? params["y"] ?? ""
      : this.numbers[this.numbers.length - 1] ?? "";
    this.#x = names.includes(params["x"] ?? "") ? params["x"] ?? ""
      : names.find((name) => name !== this.#y && rows.some((row) => typeof row[name] === "string"))
        ?? names.find((name) => name !== this.#y) ?? this.#y;
    this.#show();
  }

  destroy() {
    this.chart.destroy();
  }

  #chosen() {
    this.#kind = this.kind.value;
    this.#x = this.x.value;
    this.#y = this.y.value;
    this.change(this.#kind ? { chart: this.#kind, x: this.#x, y: this.#y }
      : { chart: null, x: null, y: null });
    this.#show();
  }

  #show() {
    if (!this.numbers.length) return;
    this.kind.value = this.#kind;
    this.x.value = this.#x;
    this.y.value = this.#y;
    this.axes.hidden = !this.#kind;
    this.chart.element.hidden = this.menu.hidden = !this.#kind;
    this.#draw();
  }

  #draw() {
    if (!this.#kind) return;
    const { rows } = this.found;
    const kind = /** @type {"bar" | "line" | "scatter"} */ (this.#kind);
    const values = rows.map((row) => row[this.#x]);
    const isText = values.some((value) => typeof value === "string");
    const names = values.map((value) => valueText(this.#x, value));
    this.chart.show({
      kind, names, up: axisOf(this.#y, rows), across: isText ? null : axisOf(this.#x, rows),
      // Names are read best beside bars that lie.
      lies: isText && kind === "bar" && rows.length <= LABELS,
      label: `${KINDS[kind]}: ${this.#y} by ${this.#x}; the table below has the numbers`,
    });
  }
}

/**
 * @param {string} name
 * @param {any[]} rows
 * @returns {import("../../core/xy.js").Axis}
 */
function axisOf(name, rows) {
  const values = rows.map((row) => (typeof row[name] === "number" ? row[name] : null));
  return { title: name, values, text: (value) => valueText(name, value),
    isBytes: kindOf(name, values) === "bytes" };
}

/**
 * @param {string} id
 * @param {string[][]} options
 */
function select(id, options) {
  return h("select", { id }, ...options.map(([value, text]) => h("option", { value }, text)));
}
