/** The order of the ranks in a picture: sorted, grouped, with a head above each group. */

/** @typedef {import("./measures.js").JobSteps} JobSteps */
/** @typedef {"rank" | "value" | "host"} Sort */
/** @typedef {{head: string, place: number}} Head `place` of the first rank below it */
/**
 * @typedef {object} Order
 * @property {Int32Array} ranks places of ranks, from top to bottom
 * @property {Head[]} heads
 */
/** @typedef {{name: string, title: string, labels: string[], of: (number | null)[]}} Grouping */

const names = new Intl.Collator("en", { numeric: true });

/**
 * The ways in which ranks are grouped: by machine, process groups, and stage of a pipeline.
 * @param {JobSteps} data
 * @returns {Grouping[]}
 */
export function groupingsOf({ ranks, groups }) {
  const result = [];
  const machines = [...new Set(ranks.machine.filter((one) => one !== null))].sort(names.compare);
  if (machines.length > 1) {
    result.push({ name: "machine", title: "Machine", labels: machines,
      of: ranks.machine.map((one) => one === null ? null : machines.indexOf(one)) });
  }
  const { stage } = ranks;
  if (stage) {
    const stages = [...new Set(stage)].sort((one, other) => one - other);
    result.push({ name: "stage", title: "Pipeline stage", labels: stages.map((one) => `stage ${one}`),
      of: stage.map((one) => stages.indexOf(one)) });
  }
  groups.forEach(({ title, labels, of }, place) =>
    result.push({ name: `group${place}`, title: `Group: ${title}`, labels, of }));
  return result;
}

/**
 * @param {JobSteps} data
 * @param {Sort} sort
 * @param {Float64Array} values one of each rank: the largest first; what is not known comes last
 * @param {Grouping | null} grouping groups in the order of what stands first in them
 * @returns {Order}
 */
export function orderOf({ ranks }, sort, values, grouping) {
  const places = ranks.title.map((_, place) => place);
  const by = {
    rank: (/** @type {number} */ one, /** @type {number} */ other) => one - other,
    value: (/** @type {number} */ one, /** @type {number} */ other) =>
      descending(values[one] ?? NaN, values[other] ?? NaN) || one - other,
    host: (/** @type {number} */ one, /** @type {number} */ other) =>
      names.compare(ranks.machine[one] ?? "", ranks.machine[other] ?? "")
      || names.compare(ranks.host[one] ?? "", ranks.host[other] ?? "") || one - other,
  }[sort];
  places.sort(by);
  if (!grouping) return { ranks: Int32Array.from(places), heads: [] };
  /** @type {Map<number | null, number[]>} */
  const parts = new Map();
  for (const place of places) {
    const of = grouping.of[place] ?? null, own = parts.get(of);
    if (own) own.push(place);
    else parts.set(of, [place]);
  }
  // Only by value does a group stand before others because of who is in it.
  const order = [...parts.keys()].sort((one, other) => one === null ? 1 : other === null ? -1
    : sort === "value" ? 0 : one - other);
  /** @type {number[]} */
  const result = [];
  /** @type {Head[]} */
  const heads = [];
  for (const of of order) {
    heads.push({ head: of === null ? "in none" : grouping.labels[of] ?? "", place: result.length });
    result.push(...parts.get(of) ?? []);
  }
  return { ranks: Int32Array.from(result), heads };
}

/**
 * @param {number} one
 * @param {number} other
 */
function descending(one, other) {
  if (Number.isNaN(one)) return Number.isNaN(other) ? 0 : 1;
  return Number.isNaN(other) ? -1 : other - one;
}
