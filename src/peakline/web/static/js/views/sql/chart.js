/** A chart of the rows of a query: which column against which, as bars, a line or points. */

import { fill, h } from "../../core/dom.js";
import { kindOf } from "../../core/kinds.js";
import { drawPlot, dropPlot, plain } from "../../core/plot.js";
import { failed } from "../../core/states.js";
import { onTheme } from "../../core/theme.js";

const KINDS = { "": "No chart", bar: "Bars", line: "Line", scatter: "Points" };
const HEIGHT = 360;
const LONGEST = 48;
/** So many names are told; of more only some. */
const LABELS = 30;
const TIMES = /** @type {const} */ ([[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);
const SIZES = /** @type {const} */ ([[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"],
  [2 ** 10, "KiB"], [1, "B"]]);

export class ResultChart {
  #kind = "";
  #x = "";
  #y = "";

  /**
   * @param {import("./query.js").Found} found
   * @param {(changes: Record<string, string | null>) => void} change of the address
   */
  constructor(found, change) {
    this.found = found;
    this.change = change;
    const numbers = found.names.filter((name) => found.rows.some((row) =>
      typeof row[name] === "number"));
    this.numbers = numbers;
    this.kind = select("chart-kind", Object.entries(KINDS));
    this.x = select("chart-x", found.names.map((name) => [name, name]));
    this.y = select("chart-y", numbers.map((name) => [name, name]));
    for (const field of [this.kind, this.x, this.y]) {
      field.addEventListener("change", () => this.#chosen());
    }
    this.plot = h("div", { class: "plot", role: "group", hidden: true,
      style: { height: `${HEIGHT}px` } });
    this.axes = h("span", { class: "row-of", hidden: true },
      h("label", { for: "chart-x" }, "across"), this.x,
      h("label", { for: "chart-y" }, "up"), this.y);
    this.element = h("div", { class: "stack" },
      numbers.length > 0 && h("div", { class: "row-of" },
        h("label", { for: "chart-kind" }, "Chart"), this.kind, this.axes),
      this.plot);
    this.endTheme = onTheme(() => void this.#draw());
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
    this.endTheme();
    void dropPlot(this.plot);
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
    this.plot.hidden = !this.#kind;
    void this.#draw();
  }

  async #draw() {
    if (!this.#kind) return;
    const { rows } = this.found;
    const across = scaled(this.#x, rows.map((row) => row[this.#x]));
    const up = scaled(this.#y, rows.map((row) => row[this.#y]));
    this.plot.setAttribute("aria-label", `${KINDS[/** @type {keyof typeof KINDS} */ (this.#kind)]}: `
      + `${this.#y} by ${this.#x}; the table below has the numbers`);
    const isText = across.values.some((value) => typeof value === "string");
    const x = isText ? across.values.map((value) => plain(cut(String(value ?? "")))) : across.values;
    const xaxis = { title: { text: plain(across.title) }, ...(isText ? named(x) : {}) };
    const yaxis = { title: { text: plain(up.title) }, rangemode: "tozero" };
    const places = isText ? x.map((_, place) => place) : x;
    // Names are read best beside bars that lie.
    const lies = isText && this.#kind === "bar" && x.length <= LABELS;
    const trace = {
      ...(this.#kind === "bar" ? { type: "bar", orientation: lies ? "h" : "v" }
        : { type: "scatter", mode: this.#kind === "line" ? "lines" : "markers" }),
      x: lies ? up.values : places, y: lies ? places : up.values,
      hovertext: isText ? x : null,
      hovertemplate: `${isText ? "%{hovertext}" : "%{x}"}: %{${lies ? "x" : "y"}}<extra></extra>`,
    };
    const height = lies ? Math.max(160, 70 + 22 * x.length) : HEIGHT;
    this.plot.style.height = `${height}px`;
    try {
      await drawPlot(this.plot, [trace], { height, showlegend: false,
        xaxis: lies ? yaxis : xaxis,
        yaxis: lies ? { ...xaxis, title: {}, autorange: "reversed" } : yaxis });
    } catch (error) {
      fill(this.plot, failed(error));
    }
  }
}

/**
 * Names below their bars, as many as are legible.
 * @param {any[]} names
 */
function named(names) {
  const every = Math.ceil(names.length / LABELS);
  const shown = names.map((_, place) => place).filter((place) => place % every === 0);
  return { tickvals: shown, ticktext: shown.map((place) => names[place]) };
}

/**
 * Values in the unit that fits the largest of them, and a title that tells it.
 * @param {string} name
 * @param {any[]} values
 */
function scaled(name, values) {
  const kind = kindOf(name, values);
  if (kind !== "time" && kind !== "bytes") return { values, title: name };
  const most = values.reduce((top, value) => Math.max(top, Math.abs(value ?? 0)), 0);
  const units = kind === "time" ? TIMES : SIZES;
  const [size, unit] = units.find(([one]) => most >= one) ?? [1, kind === "time" ? "ps" : "B"];
  return { values: values.map((value) => (value === null ? null : value / size)),
    title: `${name} in ${unit}` };
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `…${text.slice(text.length - LONGEST + 1)}` : text;
}

/**
 * @param {string} id
 * @param {string[][]} options
 */
function select(id, options) {
  return h("select", { id }, ...options.map(([value, text]) => h("option", { value }, text)));
}
