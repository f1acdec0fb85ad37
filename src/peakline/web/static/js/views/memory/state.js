/** What the view shows, as its address says it. */

import { number } from "../../core/address.js";

/** Ways to put buffers together, as the `live_memory` tool names them. */
export const GROUPS = /** @type {const} */ ({
  buffer: "Buffer", op: "Op", scope: "Scope", region_type: "Region", data_type: "Type",
  shape: "Shape", category: "Category", module: "Module", function: "Line",
  input_shape: "Input shape", step: "Step",
});

/** Those that only some formats have; the answer says so with `is_described`. */
export const DESCRIBED = /** @type {const} */ (["category", "module", "function", "input_shape"]);

/** What rows can be narrowed down to: parameters of the `live_memory` tool, and of the address. */
export const FILTERS = /** @type {const} */ ({
  op: "op", within: "in", scope: "directly in", region_type: "region", data_type: "type",
  shape: "shape", category: "category", module: "module", function: "line",
  input_shape: "input shape", step: "from step",
});

/** @typedef {keyof typeof GROUPS} Group */
/** @typedef {keyof typeof FILTERS} Filter */
/**
 * @typedef {object} State
 * @property {number | null} from what is in view, ps; null is everything
 * @property {number | null} to
 * @property {number | null} at the moment, ps; null is the allocator's peak
 * @property {string | null} allocator null is the one with the largest peak
 * @property {number[] | null} shown places of the allocators that are drawn; null: as many as are told apart
 * @property {boolean} fit whether the height fits what is in view
 * @property {Group} group
 * @property {string} q
 * @property {string} sort a column, `-column` is descending; "" is the largest first
 * @property {Partial<Record<Filter, string>>} only
 * @property {number | null} buffer the record that began the chosen one
 */

const SPECIAL = /^-?[a-z_]+$/;

/**
 * @param {Record<string, string>} params
 * @returns {State}
 */
export function readState(params) {
  const from = number(params["from"]), to = number(params["to"]);
  const isRange = from !== null && to !== null && from < to;
  const group = params["group"] ?? "buffer";
  const sort = params["sort"] ?? "";
  /** @type {State["only"]} */
  const only = {};
  for (const name of /** @type {Filter[]} */ (Object.keys(FILTERS))) {
    const value = params[name];
    if (value) only[name] = value;
  }
  return {
    from: isRange ? from : null,
    to: isRange ? to : null,
    at: number(params["at"]),
    allocator: params["allocator"] ?? null,
    shown: places(params["shown"]),
    fit: params["fit"] === "true",
    group: Object.hasOwn(GROUPS, group) ? /** @type {Group} */ (group) : "buffer",
    q: params["q"] ?? "",
    sort: SPECIAL.test(sort) ? sort : "",
    only,
    buffer: number(params["buffer"]),
  };
}

/**
 * The parameters of an address that say `changes` of a state.
 * @param {Partial<State>} changes
 * @returns {Record<string, string | number | boolean | null>}
 */
export function toParams(changes) {
  /** @type {Record<string, string | number | boolean | null>} */
  const params = {};
  for (const [name, value] of Object.entries(changes)) {
    if (name === "only") {
      const only = /** @type {State["only"]} */ (value);
      for (const filter of /** @type {Filter[]} */ (Object.keys(FILTERS))) {
        params[filter] = only[filter] ?? null;
      }
    } else if (name === "shown") {
      params["shown"] = Array.isArray(value) ? value.join(".") : null;
    } else if (name === "group") {
      params["group"] = value === "buffer" ? null : String(value);
    } else {
      params[name] = /** @type {string | number | boolean | null} */ (value);
    }
  }
  return params;
}

/**
 * @param {string | undefined} text such as `0.2`
 * @returns {number[] | null}
 */
function places(text) {
  if (!text || !/^\d{1,4}(\.\d{1,4})*$/.test(text)) return null;
  return text.split(".").map(Number);
}
