/** Where on the chart a finding's evidence is. */

import { SECTIONS } from "../../core/sections.js";
import { FILTERS } from "./state.js";

/** @typedef {import("../../core/finding.js").Finding} Finding */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./model.js").Model} Model */
/**
 * @typedef {object} Place
 * @property {string} text of the button
 * @property {Partial<State>} state what is shown then
 * @property {string} [find] the op whose allocations have no time in the evidence
 */

/**
 * @param {Finding} finding
 * @param {Model} model
 * @returns {Place | null}
 */
export function placeOf({ kind, evidence }, model) {
  const section = SECTIONS[kind];
  const allocator = model.allocators.find(({ name }) => name === evidence["allocator"]);
  if (!allocator) return null;
  /** @type {Partial<State>} */
  const state = { allocator: allocator.name, at: null, only: only(evidence["op"]), q: "",
    group: "buffer", sort: "", buffer: null, ...shownWith(allocator.name, model) };
  if (kind === "sawtooth") {
    // What is gathered is gone when the last step ends.
    return { text: "Show what it adds to the peak", state: { ...state, from: null, to: null } };
  }
  if (section === "growth") {
    const place = growth(evidence, model);
    if (place) return { text: place.text, state: { ...state, ...place.state, sort: "start_ps" } };
    return { text: "Show what it keeps at the peak", state: { ...state, sort: "start_ps" } };
  }
  if (typeof evidence["time_ps"] === "number") {
    return { text: "Show that moment", state: { ...state, at: evidence["time_ps"] } };
  }
  if (section === "churn") {
    return { text: "Show one of them", state, find: evidence["op"] };
  }
  if (section === "failure") {
    return { text: "Show what was live", state: { ...state, only: {} } };
  }
  return { text: "Show the peak", state: kind === "huge_temporary" ? state : { ...state, only: {} } };
}

/**
 * What would lower the peak: the peak, and what its rows have in common.
 * @param {{allocator: string, rows: any[]}} saving
 * @param {Model} model
 * @returns {Place | null}
 */
export function placeOfSaving({ allocator: name, rows }, model) {
  const allocator = model.allocators.find((one) => one.name === name);
  if (!allocator) return null;
  const ops = new Set(rows.map(({ op }) => op));
  const shared = ops.size === 1 ? only(rows[0]?.op) : {};
  return { text: "Show at the peak", state: { allocator: name, at: null, only: shared, q: "",
    group: "buffer", sort: "", buffer: null, ...shownWith(allocator.name, model) } };
}

/**
 * A moment of the details, such as that of a forced allocation.
 * @param {string} name of the allocator
 * @param {number} at
 * @param {string} op
 * @returns {Partial<State>}
 */
export function momentOf(name, at, op) {
  return { allocator: name, at, only: only(op), q: "", group: "buffer", buffer: null };
}

/**
 * Steps from which on memory grew, and a moment when what was kept is there.
 * @param {Record<string, any>} evidence
 * @param {Model} model
 */
function growth(evidence, model) {
  const { steps } = model;
  // Repetitions that were found in the allocations are no steps of the profile.
  if (!steps?.list.length || evidence["steps_found_by"] !== "steps") return null;
  const since = steps.withId(evidence["since_step"]);
  if (!since) return null;
  const until = steps.withId(evidence["until_step"]) ?? steps.list[steps.list.length - 1] ?? since;
  const air = Math.round((until.end_ps - since.start_ps) * 0.05);
  return {
    text: `Show where it grows, from step ${evidence["since_step_name"] || since.name}`,
    state: { from: Math.max(since.start_ps - air, model.viewport.first),
      to: Math.min(until.end_ps + air, model.viewport.last),
      at: Math.min(until.end_ps, model.end) },
  };
}

/**
 * @param {unknown} op
 * @returns {State["only"]}
 */
function only(op) {
  if (typeof op !== "string" || !op) return {};
  // A remainder is no scope.
  /** @type {keyof typeof FILTERS} */
  const name = op.startsWith("(") ? "op" : "within";
  return { [name]: op };
}

/**
 * An allocator that is not drawn now has to be.
 * @param {string} name
 * @param {Model} model
 * @returns {Partial<State>}
 */
export function shownWith(name, { allocators, state: { shown } }) {
  const place = allocators.find((one) => one.name === name)?.place;
  return shown && place !== undefined && !shown.includes(place)
    ? { shown: [...shown, place].sort((one, other) => one - other) } : {};
}
