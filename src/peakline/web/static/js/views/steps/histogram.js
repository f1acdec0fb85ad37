/** How the runs of an op are spread: a histogram where the runs are known, else the quantiles. */

import { h, svg } from "../../core/dom.js";
import { count, counted, time, worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./ops_part.js").Op} Op */

const WIDTH = 340, HEIGHT = 96, FOOT = 18, HEAD = 16;

/**
 * @param {Op} op
 * @param {{bin: number, runs: number}[]} bins runs by quarters of a doubling of picoseconds
 * @returns {HTMLElement}
 */
export function histogram(op, bins) {
  const quantiles = h("dl", { class: "facts small" },
    ...[["Shortest", op.min_ps], ["Median", op.median_ps], ["95th percentile", op.p95_ps],
      ["Longest", op.max_ps]].map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, time(Number(value))))));
  const runs = bins.reduce((sum, bin) => sum + bin.runs, 0);
  if (!runs) return h("div", {}, quantiles);
  const differs = runs !== op.occurrences;
  return h("div", { class: "stack" }, quantiles, drawn(op, bins),
    h("p", { class: "quiet note" }, differs
      ? worded(WORDING.histogram.of_name, { events: counted(runs, "event") })
      : worded(WORDING.histogram.runs, { runs: counted(runs, "run") })));
}

/**
 * @param {Op} op
 * @param {{bin: number, runs: number}[]} bins
 */
function drawn(op, bins) {
  const first = bins[0]?.bin ?? 0, last = (bins[bins.length - 1]?.bin ?? 0) + 1;
  const most = Math.max(...bins.map((bin) => bin.runs));
  const wide = WIDTH / Math.max(last - first, 1), bar = Math.min(wide, 40);
  const x = (/** @type {number} */ bin) => (bin - first) * wide;
  const atTime = (/** @type {number} */ ps) => x(4 * Math.log2(Math.max(ps, 1)));
  const y = (/** @type {number} */ value) => HEAD + (HEIGHT - HEAD) * (1 - value / most);
  const label = `${WORDING.histogram.label}: ${bins.map(({ bin, runs }) =>
    `${count(runs)} from ${time(2 ** (bin / 4), 3)}`).join(", ")}`;
  const mark = (/** @type {number} */ ps, /** @type {string} */ text) => [
    svg("line", { x1: atTime(ps), x2: atTime(ps), y1: HEAD - 4, y2: HEIGHT, class: "mark" }),
    svg("text", { x: Math.min(Math.max(atTime(ps), 24), WIDTH - 24), y: 10, "text-anchor": "middle" },
      text),
  ];
  const isApart = Math.abs(atTime(op.p95_ps) - atTime(op.median_ps)) > 48;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + FOOT}`, class: "histogram", role: "img",
    "aria-label": label },
  ...bins.map(({ bin, runs }) => svg("rect", { x: x(bin), y: y(runs), width: Math.max(bar - 1, 1),
    height: Math.max(HEIGHT - y(runs), 1) },
  svg("title", {}, `${counted(runs, "run")} of ${time(2 ** (bin / 4), 3)} to `
    + time(2 ** ((bin + 1) / 4), 3)))),
  ...mark(op.median_ps, "median"), ...(isApart ? mark(op.p95_ps, "95%") : []),
  svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT, class: "axis" }),
  svg("text", { x: 0, y: HEIGHT + 13 }, time(2 ** (first / 4), 3)),
  svg("text", { x: WIDTH, y: HEIGHT + 13, "text-anchor": "end" }, time(2 ** (last / 4), 3)));
}
