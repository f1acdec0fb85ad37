/** What changed, in one or two sentences: of memory, then of time. */

import { bytes } from "../../core/format.js";
import { allocatorName, bySize, changeText, signed, time3 } from "./changes.js";
import { isChance } from "./time.js";
import { WORDING } from "../../core/wording.js";

const GROWS = WORDING.thresholds.grows;

/**
 * @param {any} data what `peakline diff --json` prints
 * @returns {string[]}
 */
export function sentencesOf({ allocators, time }) {
  return [memorySentence(allocators), timeSentence(time)].filter(Boolean);
}

/** @param {any[]} allocators */
function memorySentence(allocators) {
  const both = allocators.filter(({ before, after }) => before && after);
  const [one] = both.slice().sort((a, b) => Math.abs(b.peak_delta_bytes) - Math.abs(a.peak_delta_bytes));
  if (!one) return "";
  const { before, after, groups, growth } = one, name = allocatorName(one.allocator);
  const [first] = bySize(groups, "delta_bytes");
  const [grown] = bySize(growth, "delta_bytes_per_step");
  const parts = [];
  if (one.peak_delta_bytes) {
    const up = one.peak_delta_bytes > 0 ? "higher" : "lower";
    parts.push(`The memory peak of ${name} is ${up}: ${bytes(before.peak_bytes)} → `
      + `${bytes(after.peak_bytes)} (${change(before.peak_bytes, after.peak_bytes, bytes)})`
      + (first && first.op && Math.sign(first.delta_bytes) === Math.sign(one.peak_delta_bytes)
        ? `, most of it ${first.op} (${signed(first.delta_bytes, bytes)})` : ""));
  } else parts.push(`The memory peak of ${name} is the same, ${bytes(after.peak_bytes)}`);
  const more = (after.growth_per_step_bytes ?? 0) - (before.growth_per_step_bytes ?? 0);
  if (Math.abs(more) > GROWS * after.peak_bytes) {
    const by = grown?.op ? ` of ${grown.op}` : "";
    parts.push(more > 0
      ? `with every step ${bytes(more)} more${by} stay in memory than before`
      : `${bytes(-more)}${by} a step no longer stay in memory`);
  }
  return `${parts.join("; ")}.`;
}

/** @param {any} both */
function timeSentence(both) {
  const before = both?.before.times?.median_ps, after = both?.after.times?.median_ps;
  if (!before || !after) return "";
  if (isChance(both)) return "Step times differ no more than chance makes them.";
  const [first] = bySize(both.ops, "delta_ps");
  const why = first && Math.sign(first.delta_ps) === Math.sign(after - before)
    ? `; ${first.op} takes ${time3(Math.abs(first.delta_ps))} ${first.delta_ps > 0 ? "more" : "less"}` : "";
  return `The median step is ${after > before ? "slower" : "quicker"}: ${time3(before)} → ${time3(after)} `
    + `(${change(before, after, time3)})${why}.`;
}

/**
 * `+5.3 MiB, +29.2%`, for parentheses.
 * @param {number} before
 * @param {number} after
 * @param {import("./changes.js").Format} format
 */
function change(before, after, format) {
  return changeText(before, after, format).replace(" (", ", ").replace(")", "");
}
