/** What a file of graphs or compiled programs is, where it records neither memory nor time. */

import { fill, h } from "../../core/dom.js";
import { bytes, count, counted, worded } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { WORDING } from "../../core/wording.js";

const KINDS = { graph_def: "GraphDef", meta_graph: "MetaGraph", hlo: "compiled program (HLO)" };
const MOST_OPS = WORDING.limits.graph_ops;

/**
 * A panel that loads what it says.
 * @param {import("../../shell/context.js").Context} context
 */
export function graphPanel(context) {
  const panel = h("section", { class: "panel stack", "aria-label": "Graph" }, loading("Reading the graph"));
  void show();
  return panel;

  async function show() {
    try {
      const { data } = await context.tool("graph_scopes", { view: "overview" });
      fill(panel, ...contentOf(context, data));
    } catch (error) {
      if (!context.signal.aborted) fill(panel, failed(error, () => void show()));
    }
  }
}

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {any} data the service's view `overview`
 */
function contentOf(context, data) {
  const { program, first } = data;
  const isProgram = program !== null;
  const kind = data.kinds.map((/** @type {keyof KINDS} */ one) => KINDS[one] ?? one).join(", ");
  const nodes = data.ops.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.nodes, 0);
  /** @type {[string, string][]} */
  const facts = [["Kind", kind]];
  if (data.graphs_total > 1) facts.push([isProgram ? "Programs" : "Graphs", count(data.graphs_total)]);
  if (isProgram) {
    facts.push(["Instructions", count(program.instructions)], ["Computations", count(program.computations)]);
    if (program.peak_bytes !== null) facts.push(["Needs at most", bytes(program.peak_bytes)]);
    if (program.argument_bytes !== null) facts.push(["Arguments", bytes(program.argument_bytes)]);
    if (program.temporary_bytes !== null) facts.push(["Temporaries", bytes(program.temporary_bytes)]);
    if (program.flops) facts.push(["FLOPs of one run", count(Math.round(program.flops))]);
  } else {
    facts.push(["Nodes", count(data.nodes)], ["Edges", count(data.edges)]);
    if (data.functions_total) {
      facts.push(["Functions", `${count(data.functions_total)}, ${counted(data.function_nodes, "node")}`]);
    }
    if (data.producer) facts.push(["Producer", count(data.producer)]);
  }
  return [
    h("h2", {}, isProgram ? program.name : "The graph"),
    h("dl", { class: "facts small" }, ...facts.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p", {}, h("a", { href: context.link("graph", first?.graph ? { graph: first.graph } : {}) },
      "Open the graph"), isProgram && program.is_scheduled ? " · " : "",
    isProgram && program.is_scheduled && h("a", { href: context.link("graph",
      { graph: first.graph, mode: "schedule" }) }, "Open the schedule")),
    h("h3", {}, isProgram ? "Most frequent opcodes" : "Most frequent ops"),
    h("ul", { class: "gauges" }, ...data.ops.slice(0, MOST_OPS).map((/** @type {any} */ one) => h("li", {},
      h("div", { class: "row-of" }, h("span", { class: "grow name" }, one.text),
        h("span", { class: "number" }, count(one.nodes))),
      h("div", { class: "gauge", "aria-hidden": "true" },
        h("div", { style: { width: `${((100 * one.nodes) / Math.max(nodes, 1)).toFixed(2)}%` } }))))),
    data.ops_total > MOST_OPS && h("p", { class: "quiet" }, `and ${counted(data.ops_total - MOST_OPS,
      "other kind")}`),
    ...(data.devices.length ? [h("h3", {}, "Devices"), h("ul", {}, ...data.devices.map(
      (/** @type {any} */ one) => h("li", {}, `${one.text}, ${counted(one.nodes, "node")}`)))] : []),
    ...(isProgram ? [] : rules(data)),
  ];
}

/** @param {any} data */
function rules({ broken, broken_total: total }) {
  if (!total) return [h("p", {}, WORDING.summary.no_broken_rule)];
  return [h("h3", {}, counted(total, "broken rule")), h("ul", {}, ...broken.map(
    (/** @type {any} */ one) => h("li", {}, h("strong", {}, one.is_error ? "Error" : "Warning"),
      ` ${one.node ? `${one.node}: ` : ""}${one.message}`))),
  total > broken.length && h("p", { class: "quiet" },
    worded(WORDING.summary.more_rules, { more: count(total - broken.length) }))];
}
