/** The steps of a profile, found by their time or their id. */

/** @typedef {{step_id: number, name: string, start_ps: number, end_ps: number}} Step */

export class Steps {
  /** The largest end of all steps up to each. @type {number[]} */
  #reach = [];
  /** @type {Map<number, Step>} */
  #byId = new Map();

  /** @param {Step[]} list in order of their begin */
  constructor(list) {
    this.list = list;
    let reach = -Infinity;
    for (const step of list) {
      reach = Math.max(reach, step.end_ps);
      this.#reach.push(reach);
      this.#byId.set(step.step_id, step);
    }
  }

  /**
   * The places of those that are in view: from the first to before the last. Among them may be some
   * that are not, where steps overlap.
   * @param {number} from
   * @param {number} to
   * @returns {[number, number]}
   */
  between(from, to) {
    return [first(this.list.length, (k) => (this.#reach[k] ?? 0) > from),
      first(this.list.length, (k) => (this.list[k]?.start_ps ?? 0) >= to)];
  }

  /**
   * The last step to begin of those that run at a time.
   * @param {number} time
   */
  at(time) {
    const [begin, end] = this.between(time, time + 1);
    for (let k = end - 1; k >= begin; k--) {
      const step = this.list[k];
      if (step && step.end_ps > time) return step;
    }
    return null;
  }

  /** @param {number} id */
  withId(id) {
    return this.#byId.get(id) ?? null;
  }

  /**
   * The step that begins before the one at `time` (or before `time`), or after.
   * @param {number} time
   * @param {1 | -1} direction
   */
  beside(time, direction) {
    const { list } = this;
    if (direction > 0) return list[first(list.length, (k) => (list[k]?.start_ps ?? 0) > time)] ?? null;
    const begin = this.at(time)?.start_ps ?? time;
    return list[first(list.length, (k) => (list[k]?.start_ps ?? 0) >= begin) - 1] ?? null;
  }
}

/**
 * The first place that holds, of `length` that hold from some place on; `length` where none does.
 * @param {number} length
 * @param {(place: number) => boolean} holds
 */
function first(length, holds) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
