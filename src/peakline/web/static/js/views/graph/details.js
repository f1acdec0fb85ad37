/** All about the selected item, with links to what else is known of it. */

import { h } from "../../core/dom.js";
import { bytes, count, counted, percent, time } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../shell/context.js").Context} Context */
/**
 * @typedef {object} Actions
 * @property {(item: number) => void} reveal show an item in the picture
 * @property {(item: number, isOpen: boolean) => void} open
 * @property {(way: import("./state.js").Way, item: number, depth?: number) => void} only
 * @property {(name: string) => string} functionLink the address of a function's body
 */
/** @typedef {{tools: readonly string[], picture: import("./picture.js").Picture}} About */

const KINDS = WORDING.graph.kinds;

/**
 * @param {Context} context
 * @param {any} known the service's view `item`
 * @param {About} about
 * @param {Actions} actions
 */
export function detailsPanel(context, known, { tools, picture }, actions) {
  const item = picture.items.find((one) => one.id === known.item);
  const isNode = known.kind === "node";
  return [
    h("h2", { class: "gv-title" }, known.name ?? known.label),
    h("p", { class: "quiet" }, isNode ? known.op : KINDS[/** @type {keyof KINDS} */ (known.kind)],
      known.device ? ` on ${known.device}` : ""),
    known.within.length > 0 && h("p", { class: "gv-within" }, "in ", ...known.within.flatMap(
      (/** @type {any} */ one, /** @type {number} */ place) => [place ? " › " : "",
        h("button", { type: "button", class: "plain link", onclick: () => actions.reveal(one.item) },
          one.label)])),
    h("div", { class: "gv-actions" },
      known.children > 0 && h("button", { type: "button",
        onclick: () => actions.open(known.item, !item?.is_open) }, item?.is_open ? "Close" : "Open"),
      !item && h("button", { type: "button", onclick: () => actions.reveal(known.item) }, "Show in the graph"),
      isNode && h("span", { class: "gv-group", role: "group", "aria-label": "Only the neighbourhood" },
        "Around: ", ...[1, 2, 3].map((depth) => h("button", { type: "button",
          title: `Only nodes at most ${counted(depth, "edge")} away`,
          "aria-label": `Nodes at most ${counted(depth, "edge")} away`,
          onclick: () => actions.only("around", known.item, depth) }, String(depth)))),
      isNode && h("button", { type: "button", onclick: () => actions.only("inputs", known.item) }, "Path to an input"),
      isNode && h("button", { type: "button", onclick: () => actions.only("outputs", known.item) }, "Path to an output")),
    facts(known, picture),
    links(context, known, tools, picture),
    known.source && source(known.source),
    known.functions?.length > 0 && section(WORDING.graph.functions, h("ul", {},
      ...known.functions.map((/** @type {string} */ name) =>
        h("li", {}, h("a", { href: actions.functionLink(name) }, name))))),
    known.bodies?.length > 0 && section("Computations", h("ul", {}, ...known.bodies.map(
      (/** @type {any} */ body) => h("li", {}, h("button", { type: "button", class: "plain link",
        onclick: () => actions.open(body.holder < 0 ? known.item : body.holder, true) }, body.name),
      `, ${counted(body.instructions, "instruction")}`)))),
    mix("Kinds of work", known.ops, known.nodes),
    known.devices.length > 0 && known.nodes > 1 && mix("Devices", known.devices, known.nodes),
    ends("Inputs", known.inputs, actions), ends("Outputs", known.outputs, actions),
    known.stack?.length > 0 && section(WORDING.graph.made, h("ol", { class: "gv-stack" },
      ...known.stack.map((/** @type {any} */ frame) => h("li", {}, h("span", { class: "mono" },
        `${frame.file || "?"}:${frame.line}`), ` ${frame.function}`)))),
    known.attributes?.length > 0 && section("Attributes", h("dl", { class: "gv-attributes" },
      ...known.attributes.flatMap((/** @type {any} */ one) =>
        [h("dt", {}, one.name), h("dd", {}, one.value || "(empty)")]))),
  ];
}

/**
 * @param {any} known
 * @param {import("./picture.js").Picture} picture
 */
function facts(known, picture) {
  /** @type {[string, string][]} */
  const result = [];
  if (known.nodes > 1) result.push(["Nodes", count(known.nodes)]);
  if (picture.has_time && known.runs) {
    result.push([picture.kind === "hlo" ? WORDING.graph.runs_time : "Time",
      `${time(known.time_ps)}${picture.time_ps ? `, ${percent(known.time_ps / picture.time_ps)}` : ""}`]);
    result.push(["Runs", count(known.runs)]);
  }
  if (known.peak_bytes) result.push([WORDING.graph.at_peak, bytes(known.peak_bytes)]);
  if (known.result_bytes) result.push(["Result", bytes(known.result_bytes)]);
  if (known.flops) result.push(["FLOPs of one run", count(known.flops)]);
  if (known.bytes_accessed) result.push(["Bytes accessed", bytes(known.bytes_accessed)]);
  return result.length > 0 && h("dl", { class: "facts gv-facts" }, ...result.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/**
 * The same node in other views, where they know it.
 * @param {Context} context
 * @param {any} known
 * @param {readonly string[]} tools
 * @param {import("./picture.js").Picture} picture
 */
function links(context, known, tools, picture) {
  if (known.kind !== "node") return null;
  const result = [];
  const has = (/** @type {string} */ tool) => tools.includes(tool);
  if (known.events?.length && has("timeline")) {
    result.push(h("a", { href: context.link("timeline", { event: known.events[0] }) },
      "Its longest run in the timeline"));
    result.push(h("a", { href: context.link("timeline", { q: known.name }) }, "All of its runs"));
  }
  if (known.runs && has("framework_op_stats")) {
    result.push(h("a", { href: context.link("steps", { part: "ops", q: known.name }) }, "In the table of ops"));
  }
  if (known.peak_bytes && picture.kind !== "hlo" && has("live_memory")) {
    result.push(h("a", { href: context.link("memory", { op: known.name }) }, "Its buffers in Memory"));
  }
  if (known.own_peak_bytes && has("program_memory")) {
    result.push(h("a", { href: context.link("memory", { programs: "true", program: picture.graph,
      pitem: known.item }) }, "Its buffers in Memory"));
  }
  if (picture.kind === "hlo" && known.attributes.some((/** @type {any} */ one) => one.name === "schedule_index")) {
    result.push(h("a", { href: context.link("graph", { graph: picture.graph, mode: "schedule",
      item: known.item }) }, "Where it stands in the schedule"));
  }
  return result.length > 0 && h("ul", { class: "gv-links" }, ...result.map((link) => h("li", {}, link)));
}

/** @param {{file: string, line: number}} source */
function source({ file, line }) {
  return section("Source line", h("p", { class: "mono" }, `${file}:${line}`));
}

/** @param {string} title @param {any[]} parts @param {number} nodes */
function mix(title, parts, nodes) {
  return nodes > 1 && parts.length > 0 && section(title, h("dl", { class: "gv-mix" },
    ...parts.flatMap((part) => [h("dt", {}, part.text), h("dd", {}, count(part.nodes))])));
}

/** @param {string} title @param {any} known @param {Actions} actions */
function ends(title, known, actions) {
  if (!known?.total) return null;
  return section(`${title} (${count(known.total)})`, h("ul", { class: "gv-ends" },
    ...known.rows.map((/** @type {any} */ row) => h("li", {},
      h("button", { type: "button", class: "plain link", onclick: () => actions.reveal(row.item) }, row.name),
      h("span", { class: "quiet" }, row.is_control ? " only orders"
        : [` ${row.op}`, row.shape, row.bytes !== null && bytes(row.bytes)].filter(Boolean).join(", ")))),
    known.total > known.rows.length && h("li", { class: "quiet" },
      `and ${count(known.total - known.rows.length)} more`)));
}

/** @param {string} title @param {...Node} content */
function section(title, ...content) {
  return h("section", { class: "gv-section" }, h("h3", {}, title), ...content);
}
