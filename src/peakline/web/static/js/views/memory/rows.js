/** The columns of the table of what is live. */

import { h } from "../../core/dom.js";
import { percent, time } from "../../core/format.js";
import { GROUPS } from "./state.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/table.js").Column} Column */

/** Rows that stand for no buffer of an op, and what they mean. @type {Record<string, string>} */
const SPECIAL = WORDING.special_rows;

/** @param {string} key */
export function isSpecial(key) {
  return key in SPECIAL;
}

/**
 * @param {import("./state.js").Group} group
 * @param {any[]} rows
 * @param {import("./model.js").Model} model
 * @returns {Column[]}
 */
export function columnsOf(group, rows, model) {
  if (group !== "buffer") {
    return [
      { key: "key", title: GROUPS[group], cell: ({ key }) => named(key, group) },
      { key: "bytes", title: "Bytes", kind: "bytes" },
      { key: "share", title: "Share", kind: "percent", help: "of all that is in use",
        cell: (row) => row.shareText ?? percent(row.share) },
      { key: "count", title: "Buffers", kind: "count" },
    ];
  }
  const has = (/** @type {string} */ key) =>
    rows.some((row) => row[key] !== null && row[key] !== "" && row[key] !== undefined);
  /** @type {(Column | false)[]} */
  const columns = [
    { key: "op", title: "Op", cell: ({ op }) => named(op), width: "minmax(11rem, 1fr)" },
    { key: "bytes", title: "Bytes", kind: "bytes", width: "6rem" },
    has("requested_bytes") && { key: "requested_bytes", title: "Requested", kind: "bytes",
      width: "6.6rem", help: "what the op requested; the allocator rounds up" },
    rows.some(({ count }) => count > 1)
      && { key: "count", title: "Buffers", kind: "count", width: "6rem" },
    has("shape") && { key: "shape", title: "Type and shape", width: "minmax(9rem, 11rem)",
      cell: ({ data_type: type, shape }) => `${type} ${shape}`.trim() },
    has("data_type") && !has("shape") && { key: "data_type", title: "Type", width: "5rem" },
    has("category") && { key: "category", title: "Category", width: "6.5rem",
      help: "what it is for, as the call stack and the events around it say" },
    has("module") && { key: "module", title: "Module", width: "minmax(7rem, 10rem)" },
    has("function") && { key: "function", title: "Line", width: "minmax(9rem, 14rem)" },
    has("input_shape") && !has("shape") && { key: "input_shape", title: "Input shape",
      width: "minmax(7rem, 10rem)" },
    has("region_type") && { key: "region_type", title: "Region",
      width: `minmax(5rem, ${widthOf(rows.map(({ region_type: region }) => region ?? ""), 6.5, 11)})` },
    has("start_step") && { key: "start_step", title: "Step", width: stepWidth(rows, model),
      help: "the step in which it was allocated", cell: (row) => stepName(row.start_step, model) },
    !model.isMoment && { key: "start_ps", title: "Allocated", kind: "time", width: "6.2rem",
      cell: ({ start_ps: begin, record }) => begin !== null ? time(begin)
        : record === null ? "" : "before" },
    !model.isMoment && { key: "end_ps", title: "Freed", kind: "time", width: "6.2rem",
      cell: ({ end_ps: end, record }) => end !== null ? time(end) : record === null ? "" : "never",
      help: "never: it is still live when the profile ends" },
  ];
  return columns.filter((column) => column !== false);
}

/**
 * As wide as the longest step's name, within bounds.
 * @param {any[]} rows
 * @param {import("./model.js").Model} model
 */
function stepWidth(rows, model) {
  return widthOf(rows.map(({ start_step: id }) => stepName(id, model)), 5, 9);
}

/**
 * As wide as the longest text, from ``least`` to ``most`` rem.
 * @param {string[]} texts
 * @param {number} least
 * @param {number} most
 */
function widthOf(texts, least, most) {
  const longest = texts.reduce((sofar, text) => Math.max(sofar, text.length), 0);
  return `${Math.min(Math.max(0.55 * longest + 1.6, least), most).toFixed(1)}rem`;
}

/**
 * What a step is called.
 * @param {number | null} id
 * @param {import("./model.js").Model} model
 */
export function stepName(id, model) {
  if (id === null) return "";
  const result = model.steps?.withId(id);
  // Ids that are hashes are no numbers that a browser can tell exactly.
  return result?.name || (Number.isSafeInteger(id) ? String(id) : "");
}

/**
 * @param {string} text
 * @param {import("./state.js").Group} group
 */
function named(text, group = "op") {
  if (!text) return h("span", { class: "quiet" }, group === "op" ? "(no op)" : "(not recorded)");
  const meaning = SPECIAL[text];
  if (meaning) return h("span", { class: "quiet", title: meaning }, text);
  const cut = text.lastIndexOf("/", text.length - 2) + 1;
  // Of a long name its end tells more: the scope is what is cut.
  return h("span", { class: "op", title: text }, cut > 0 && h("span", { class: "scope quiet" }, text.slice(0, cut)),
    h("span", { class: "own" }, text.slice(cut)));
}
