/** How differences look: signed numbers, and bars that grow from the middle. */

import { h } from "../../core/dom.js";
import { percent, time } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/table.js").Column} Column */
const { far: FAR, little: LITTLE } = WORDING.thresholds;

/** @typedef {(value: number | null | undefined) => string} Format */

/**
 * `+1.5 MiB`, `−20 ms`, `0 B`.
 * @param {number} delta
 * @param {Format} format
 */
export function signed(delta, format) {
  if (!delta) return format(0);
  return `${delta > 0 ? "+" : "−"}${format(Math.abs(delta))}`;
}

/**
 * The change in words: `+5.3 MiB (+29.2%)`; of nothing there is no share.
 * @param {number} before
 * @param {number} after
 * @param {Format} format
 */
export function changeText(before, after, format) {
  const delta = after - before;
  if (!delta) return "no change";
  const share = before && after <= FAR * before ? ` (${signed(delta / before, percent)})` : "";
  return signed(delta, format) + share;
}

/**
 * A fact of both sessions and what changed; null where neither knows it.
 *
 * Less is better of what a job pays; nothing is said of what is `neutral`. A change of a `share` is in
 * points: a share of a share says nothing.
 * @param {string} name
 * @param {number | null | undefined} before
 * @param {number | null | undefined} after
 * @param {Format} format
 * @param {{neutral?: boolean, share?: boolean}} [how]
 */
export function changeFact(name, before, after, format, { neutral = false, share = false } = {}) {
  const isInBoth = typeof before === "number" && typeof after === "number";
  if (!isInBoth && typeof before !== "number" && typeof after !== "number") return null;
  const delta = isInBoth ? after - before : 0;
  const isNothing = Math.abs(delta) < LITTLE * Math.abs(before ?? 0) || !delta;
  const kind = neutral || isNothing ? "" : delta > 0 ? "bad" : "good";
  return h("div", {}, h("dt", {}, name),
    h("dd", {}, `${format(before)} → ${format(after)}`),
    isInBoth && h("dd", { class: `more ${kind}` }, share && delta
      ? `${signed(100 * delta, (points) => (points ?? 0).toFixed(1))} points`
      : changeText(before, after, format)));
}

/**
 * A column of differences: a bar to the right for more, to the left for less, and the number.
 * @param {string} key of the rows
 * @param {string} title
 * @param {"bytes" | "time"} kind
 * @param {Format} format
 * @param {any[]} rows
 * @returns {Column}
 */
export function changeColumn(key, title, kind, format, rows) {
  const most = rows.reduce((best, row) => Math.max(best, Math.abs(row[key])), 0) || 1;
  return { key, title, kind, width: "13rem", help: `${title}: after less before`, cell: (row) => {
    const delta = row[key], share = (50 * Math.abs(delta)) / most;
    const bar = h("span", { class: `bar ${delta > 0 ? "more" : "less"}`,
      style: { width: `${share}%`, left: `${delta > 0 ? 50 : 50 - share}%` } });
    return h("span", { class: "change" },
      h("span", { class: "bars", "aria-hidden": "true" }, bar),
      h("span", { class: "number" }, signed(delta, format)));
  } };
}

/**
 * What an allocator is called in a sentence: some have only a number.
 * @param {string} name
 */
export function allocatorName(name) {
  return /^\d+$/.test(name) ? `allocator ${name}` : name;
}

/**
 * Rows by their absolute change, the largest first.
 * @param {any[]} rows
 * @param {string} key
 */
export function bySize(rows, key) {
  return rows.slice().sort((one, other) => Math.abs(other[key]) - Math.abs(one[key]));
}

/**
 * A time as precise as two of them side by side need.
 * @type {Format}
 */
export const time3 = (value) => time(value, 3);
