/** The stretch of time that is shown, in picoseconds; charts of one page share it. */

const SHORTEST_PS = 100;

export class Viewport {
  /** @type {Set<() => void>} */
  #listeners = new Set();

  /**
   * @param {number} first the least time there is
   * @param {number} last the largest
   */
  constructor(first, last) {
    this.first = first;
    // Far from zero numbers lie further apart than that.
    this.last = Math.max(last, first + SHORTEST_PS, first + Math.abs(first) * 2 ** -40);
    this.from = this.first;
    this.to = this.last;
  }

  get span() {
    return this.to - this.from;
  }

  get isWhole() {
    return this.from <= this.first && this.to >= this.last;
  }

  /**
   * Show `from` to `to`, as near to it as there is something; tells the listeners when it changes.
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    const whole = this.last - this.first;
    const span = Math.min(Math.max(to - from, SHORTEST_PS), whole);
    const middle = (from + to) / 2;
    const begin = Math.round(
      Math.min(Math.max(middle - span / 2, this.first), this.last - span));
    const end = Math.round(begin + span);
    if (begin === this.from && end === this.to) return;
    this.from = begin;
    this.to = end;
    for (const listener of this.#listeners) listener();
  }

  /** Show everything. */
  showAll() {
    this.show(this.first, this.last);
  }

  /**
   * `factor` below 1 shows less; what is at `at` (a time) stays where it is.
   * @param {number} factor
   * @param {number} [at]
   */
  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(Math.max(this.span * factor, SHORTEST_PS), this.last - this.first);
    const share = (at - this.from) / this.span;
    const begin = at - share * span;
    this.show(begin, begin + span);
  }

  /**
   * Move by a share of what is shown; positive is later.
   * @param {number} share
   */
  pan(share) {
    const by = share * this.span;
    const fitted = Math.min(Math.max(by, this.first - this.from), this.last - this.to);
    this.show(this.from + fitted, this.to + fitted);
  }

  /**
   * Bring a range into view with air around it, as far out as it needs.
   * @param {number} from
   * @param {number} to
   */
  bring(from, to, air = 0.5) {
    const more = Math.max((to - from) * air, SHORTEST_PS);
    this.show(from - more, to + more);
  }

  /**
   * @param {number} time
   * @param {number} width in pixels
   */
  x(time, width) {
    return ((time - this.from) / this.span) * width;
  }

  /**
   * @param {number} x
   * @param {number} width in pixels
   */
  time(x, width) {
    return this.from + (x / width) * this.span;
  }

  /**
   * Be told of changes; returns what ends that.
   * @param {() => void} listener
   */
  onChange(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
