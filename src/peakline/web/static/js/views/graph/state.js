/** What the view shows, as the address says it. */

import { number } from "../../core/address.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {"time" | "memory" | "device" | "category"} Mode */
/** @typedef {"around" | "inputs" | "outputs"} Way */
/**
 * @typedef {object} State
 * @property {string | null} graph null: the one that the service chooses
 * @property {string | null} fn the function whose body is shown
 * @property {number[] | null} open the items that are open, null: those that the service chooses
 * @property {number | null} item the selected one
 * @property {Mode | null} color null: what there are numbers for
 * @property {boolean} schedule whether the order of the program is shown
 * @property {{way: Way, item: number, depth: number} | null} only what alone is shown
 * @property {string} q what is searched for
 */

/** What colors can mean. @type {Record<Mode, string>} */
export const MODES = { category: "kind of work", time: "time", memory: WORDING.graph.memory,
  device: "device" };

/**
 * @param {Record<string, string>} params
 * @returns {State}
 */
export function stateOf(params) {
  const { open, color, only = "" } = params;
  const [way = "", item = "", depth = "1"] = only.split(".");
  const of = number(item);
  return {
    graph: params["graph"] ?? null,
    fn: params["fn"] ?? null,
    open: open === undefined ? null
      : open.split(".").map((one) => number(one)).filter((one) => one !== null),
    item: number(params["item"]),
    color: color && Object.hasOwn(MODES, color)
      ? /** @type {Mode} */ (color) : null,
    schedule: params["mode"] === "schedule",
    only: of !== null && ["around", "inputs", "outputs"].includes(way)
      ? { way: /** @type {Way} */ (way), item: of, depth: Math.min(3, Math.max(1, number(depth) ?? 1)) }
      : null,
    q: params["q"] ?? "",
  };
}

/**
 * The parameters of the address that say a state.
 * @param {State} state
 */
export function paramsOf({ graph, fn, open, item, color, schedule, only, q }) {
  return {
    graph, fn, item, color, q,
    // Nothing open is something else than what the service opens.
    open: open === null ? null : open.length ? open.join(".") : "none",
    mode: schedule ? "schedule" : null,
    only: only && `${only.way}.${only.item}${only.way === "around" ? `.${only.depth}` : ""}`,
  };
}

/**
 * The parameters of the question for a picture.
 * @param {State} state
 * @returns {Record<string, string | number | null>}
 */
export function pictureQuery({ open, only, item }) {
  if (only) {
    return only.way === "around" ? { view: "around", item: only.item, depth: only.depth }
      : { view: "path", item: only.item, to: only.way };
  }
  return { view: "scopes", opened: open === null ? null : open.join(",") || "none", reveal: item };
}

/**
 * Which graph a question is about.
 * @param {State} state
 * @param {Record<string, string | number | boolean | null>} query
 */
export function ofGraph({ graph, fn }, query) {
  return { ...(graph === null ? { function: fn } : { graph, function: fn }), ...query };
}

/**
 * What the view needs of the service before it can draw anything.
 * @param {Record<string, string>} params of the address
 * @returns {{tool: string, query: Record<string, string | number | boolean | null>}[]}
 */
export function firstQuestions(params) {
  const state = stateOf(params);
  return [
    ...(state.schedule ? []
      : [{ tool: "graph_scopes", query: ofGraph(state, { ...pictureQuery(state), quick: true }) }]),
    { tool: "graph_scopes", query: { view: "graphs" } },
  ];
}
