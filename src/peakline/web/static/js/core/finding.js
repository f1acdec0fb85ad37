/** A finding: how severe, what, what to do, and the numbers behind it. */

import { h } from "./dom.js";
import { columnsOf, titleOf, valueText } from "./kinds.js";
import { SECTIONS } from "./sections.js";
import { withExport } from "./exporting.js";
import { DataTable } from "./table.js";

/**
 * @typedef {object} Finding of `memory_findings`, `time_findings` or `summary`
 * @property {string} kind
 * @property {"info" | "warning" | "error"} severity
 * @property {string} title
 * @property {string} suggestion
 * @property {Record<string, any>} evidence
 * @property {number} [gain_share]
 */
/** @typedef {{text: string, href: string}} EvidenceLink */
/** @typedef {(view: string, params?: Record<string, string | number>) => string} Link */

/**
 * @param {Finding} finding
 * @param {EvidenceLink[]} links to the evidence
 * @returns {HTMLElement}
 */
export function findingPart(finding, links) {
  const { severity, title, suggestion, evidence } = finding;
  const numbers = h("details", {}, h("summary", {}, "The numbers behind it"));
  numbers.addEventListener("toggle", () => {
    if (numbers.open && numbers.childElementCount === 1) numbers.append(...evidenceParts(evidence));
  });
  return h("article", { class: `finding ${severity}` },
    h("h3", {}, h("span", { class: `badge ${severity}` }, severity), " ", title),
    h("p", {}, suggestion),
    links.length > 0 && h("p", { class: "row-of" },
      ...links.map(({ text, href }) => h("a", { href }, text))),
    Object.keys(evidence).length > 0 && numbers);
}

/**
 * The evidence as facts and tables.
 * @param {Record<string, any>} evidence
 * @returns {HTMLElement[]}
 */
export function evidenceParts(evidence) {
  const facts = [], tables = [];
  for (const [name, value] of Object.entries(evidence)) {
    if (value === null || value === "") continue;
    if (Array.isArray(value) && typeof value[0] === "object") {
      const table = new DataTable({ label: name === "rows" ? "Rows of evidence" : titleOf(name),
        columns: columnsOf(value, Object.keys(value[0])), height: "18rem" });
      table.setRows(value);
      tables.push(withExport(table, { name: `evidence ${name}`, json: () => value }));
    } else if (!Array.isArray(value) || value.length) {
      facts.push(h("div", {}, h("dt", {}, titleOf(name)), h("dd", {}, valueText(name, value))));
    }
  }
  return [h("dl", { class: "facts small" }, ...facts), ...tables];
}

/**
 * Where in the page a finding's evidence can be seen.
 * @param {Finding} finding
 * @param {Link} link of the session that is shown
 * @returns {EvidenceLink[]}
 */
export function evidenceLinks(finding, link) {
  const { kind, evidence } = finding;
  return "allocator" in evidence ? memoryLinks(kind, evidence, link)
    : timeLinks(kind, evidence, link);
}

/**
 * @param {string} kind
 * @param {Record<string, any>} evidence
 * @param {Link} link
 * @returns {EvidenceLink[]}
 */
function memoryLinks(kind, evidence, link) {
  /** @type {Record<string, string | number>} */
  const params = {};
  if (evidence["allocator"]) params["allocator"] = evidence["allocator"];
  const at = evidence["time_ps"];
  if (typeof at === "number") params["at"] = at;
  /** @type {EvidenceLink[]} */
  const links = [{ text: typeof at === "number" ? "That moment in Memory" : "Show in Memory",
    href: link("memory", params) }];
  const op = evidence["op"];
  if (op) {
    links.push({ text: `Buffers of ${cut(op)}`, href: link("memory", { ...params, q: op }) });
  }
  return SECTIONS[kind] === "failure" ? links.slice(0, 1) : links;
}

/**
 * @param {string} kind
 * @param {Record<string, any>} evidence
 * @param {Link} link
 * @returns {EvidenceLink[]}
 */
function timeLinks(kind, evidence, link) {
  /** @type {EvidenceLink[]} */
  const links = [];
  const isInput = SECTIONS[kind] === "input";
  const first = evidence["rows"]?.[0] ?? {};
  if (isInput) {
    links.push({ text: "Stages of the input pipeline", href: link("steps", { part: "input" }) });
  }
  if (typeof first["idle_from_ps"] === "number") {
    const from = first["idle_from_ps"], long = first["idle_before_ps"];
    const air = Math.round(long / 4);
    links.push({ text: "The longest gap in the timeline",
      href: link("timeline", { from: from - air, to: from + long + air,
        range: `${from}_${from + long}`, tab: "range" }) });
  }
  if (typeof first["step"] === "string") {
    /** @type {Record<string, string>} */
    const params = { name: first["step"] };
    if (first["device"]) params["device"] = first["device"];
    links.push({ text: `Step ${cut(first["step"])} among the others`, href: link("steps", params) },
      { text: "In the timeline", href: link("timeline", { step: first["step"], pick: "step" }) });
  } else if (evidence["steps"] && !isInput) {
    links.push({ text: "Steps", href: link("steps") });
  }
  const meant = eventOf(evidence);
  if (meant) {
    links.push({ text: `${cut(meant)} in the timeline`, href: link("timeline", { q: meant, find: meant }) });
  }
  if (typeof first["op"] === "string") {
    links.push({ text: `${cut(first["op"])} among the ops`,
      href: link("steps", { part: "ops", q: first["op"] }) });
  }
  return links;
}

/**
 * What a finding is about, by a name that the timeline finds; "" where it names no event.
 * @param {Record<string, any>} evidence
 * @returns {string}
 */
function eventOf(evidence) {
  const { longest, programs, bottleneck, op, most } = evidence;
  if (longest || programs?.[0]) return longest || programs[0];
  // Of several steps the part that takes most is no event.
  const named = [bottleneck, op, evidence["rows"] ? "" : most].find((one) => typeof one === "string" && one);
  if (named) return named;
  const { function: name, file, line } = evidence;
  if (!name) return "";
  const base = String(file ?? "").split(/[\\/]/).pop();
  return base ? `${name} (${base}:${line})` : name;
}

const CUT = 40;

/** @param {string} name */
function cut(name) {
  return name.length > CUT ? `${name.slice(0, CUT - 1)}…` : name;
}
