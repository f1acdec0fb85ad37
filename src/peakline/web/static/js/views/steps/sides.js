/** Shares of the self time of the host and of devices, which are shares of two different wholes. */

import { percent } from "../../core/format.js";

/** @typedef {import("../../core/table.js").Column} Column */

/** @typedef {{share: number, device_share: number | null, host_share: number | null}} Shares */

/**
 * Rows with their share of the self time of their side, which one of the other two has as well.
 * @template {{side: string, self_ps: number}} Row
 * @param {Row[]} rows
 * @returns {(Row & Shares)[]}
 */
export function withShares(rows) {
  /** @type {Record<string, number>} */
  const whole = {};
  for (const { side, self_ps: spent } of rows) whole[side] = (whole[side] ?? 0) + spent;
  return rows.map((row) => {
    const share = row.self_ps / Math.max(whole[row.side] ?? 0, 1);
    return { ...row, share, device_share: row.side === "device" ? share : null,
      host_share: row.side === "host" ? share : null };
  });
}

/**
 * @param {boolean} isBoth whether there are rows of the host and of devices
 * @returns {Column[]}
 */
export function shareColumns(isBoth) {
  if (!isBoth) {
    return [{ key: "share", title: "Share", kind: "percent", width: "5rem", help: "of the self time" }];
  }
  return ["device", "host"].map((side) => ({
    key: `${side}_share`, title: `Share of ${side}`, kind: "percent", width: "9rem",
    help: `of the self time of the ${side}`,
    cell: (row) => (row.side === side ? percent(row.share) : ""),
  }));
}
