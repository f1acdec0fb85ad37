/** What the view shows, as its address says it. */

import { number } from "../../core/address.js";

/** Ways to put buffers together, as the `live_memory` tool names them. */
export const GROUPS = /** @type {const} */ ({
  buffer: "Buffer", op: "Op", scope: "Scope", region_type: "Region", data_type: "Type",
  shape: "Shape", category: "Category", module: "Module", function: "Line",
  input_shape: "Input shape", step: "Step",
});

/** How memory in use is drawn: a name and what it is. */
export const DRAWN = /** @type {const} */ ({
  line: ["Line", "How much is in use"],
  stack: ["Stacked", "What it is made of: the twelve largest groups, and the rest"],
  buffers: ["Buffers", "A polygon for each buffer, stacked in the order of allocation"],
});

/** What layers are put together by, as the `memory_stack` tool names them. */
export const BY = /** @type {const} */ ({
  op: "Op", scope: "Scope", region_type: "Region", data_type: "Type", shape: "Shape",
  category: "Category", module: "Module", function: "Line", input_shape: "Input shape",
  stack: "Call stack", step: "Step", program: "Name of the step",
});

/** What layers of compiled programs are put together by, as the `program_memory` tool names them. */
export const PROGRAM_BY = /** @type {const} */ ({
  opcode: "opcode", scope: "scope", source: "source line",
});

/** What the address map is of: a name and what it is. */
export const MAPS = /** @type {const} */ ({
  none: ["Off", "No map"],
  time: ["Over time", "Where buffers lie over the stretch in view"],
  moment: ["At the moment", "Where buffers lie at the moment looked at, with holes"],
  listed: ["As listed", "The blocks that the file lists: of a failed allocation, or of a snapshot"],
  replayed: ["Replayed", "Under another limit or other settings, where the replay is proved"],
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
/** @typedef {keyof typeof DRAWN} Drawn */
/** @typedef {keyof typeof BY} By */
/** @typedef {keyof typeof MAPS} MapView */
/** @typedef {keyof typeof PROGRAM_BY} ProgramBy */
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
 * @property {Drawn} draw
 * @property {By} by what layers are put together by
 * @property {string[]} off layers that are taken out of the picture
 * @property {boolean} requested whether layers are of what was requested
 * @property {boolean} reserved whether what was taken from the device is drawn
 * @property {boolean} capacity whether it is drawn although it is far above
 * @property {number | null} a begin of the range that is measured, ps
 * @property {number | null} b
 * @property {By} parts what the range is put together by
 * @property {"live" | "allocated"} of what the range's flame graph is of
 * @property {"scope" | "stack"} tree what trees are by
 * @property {boolean} lifetimes whether these are shown
 * @property {MapView | null} map what the address map is of; null: of the only moment of a file, else none
 * @property {number | null} report of a failed allocation, whose blocks are listed
 * @property {string} limit of the replay
 * @property {string} settings of the replay, separated by blanks
 * @property {boolean} programs whether compiled programs are shown
 * @property {string | null} program which one; null is the one that needs most
 * @property {ProgramBy} pby what its layers are put together by
 * @property {string} ppart the chosen part of its icicle
 * @property {number | null} pitem the instruction whose values are marked, a node of the graph
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
    draw: oneOf(DRAWN, params["draw"], "line"),
    by: oneOf(BY, params["by"], "op"),
    off: /^[a-z0-9.]{1,400}$/.test(params["off"] ?? "") ? (params["off"] ?? "").split(".") : [],
    requested: params["requested"] === "true",
    reserved: params["reserved"] === "true",
    capacity: params["capacity"] === "true",
    ...range(number(params["a"]), number(params["b"])),
    parts: oneOf(BY, params["parts"], "op"),
    of: params["of"] === "allocated" ? "allocated" : "live",
    tree: params["tree"] === "stack" ? "stack" : "scope",
    lifetimes: params["lifetimes"] === "true",
    map: Object.hasOwn(MAPS, params["map"] ?? "") ? /** @type {MapView} */ (params["map"]) : null,
    report: number(params["report"]),
    limit: params["limit"] ?? "",
    settings: params["settings"] ?? "",
    programs: params["programs"] === "true",
    program: params["program"] ?? null,
    pby: oneOf(PROGRAM_BY, params["pby"], "opcode"),
    ppart: params["ppart"] ?? "",
    pitem: number(params["pitem"]),
  };
}

/**
 * @template {object} T
 * @param {T} known
 * @param {string | undefined} value
 * @param {keyof T} other
 * @returns {keyof T}
 */
function oneOf(known, value, other) {
  return value !== undefined && Object.hasOwn(known, value) ? /** @type {keyof T} */ (value) : other;
}

/**
 * @param {number | null} a
 * @param {number | null} b
 */
function range(a, b) {
  return a !== null && b !== null && a <= b ? { a, b } : { a: null, b: null };
}

/** What is not in an address, since it is so without. */
const DEFAULTS = /** @type {Record<string, unknown>} */ ({
  group: "buffer", draw: "line", by: "op", parts: "op", of: "live", tree: "scope", requested: false,
  reserved: false, capacity: false, map: null, lifetimes: false, limit: "", settings: "",
  programs: false, pby: "opcode", ppart: "",
});

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
    } else if (name === "off") {
      params["off"] = Array.isArray(value) && value.length ? value.join(".") : null;
    } else if (DEFAULTS[name] === value) {
      params[name] = null;
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
