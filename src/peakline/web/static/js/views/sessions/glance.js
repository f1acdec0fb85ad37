/** What a session's summary says in one line of the list, whatever hosts it has. */
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/finding.js").Finding & {host: string}} FirstFinding */
/**
 * @typedef {object} Glance
 * @property {number | null} duration ps; of several hosts the longest
 * @property {number | null} steps of several hosts the most
 * @property {number | null} step the median step in ps; of several hosts the slowest
 * @property {number | null} peak bytes of the allocator with the largest one, over all hosts
 * @property {string} peakOf whose peak that is
 * @property {{error: number, warning: number, info: number}} findings of all hosts
 * @property {FirstFinding[]} first the worst ones
 * @property {string[]} notable what stands out besides, in sentences
 * @property {string} straggler what is said of who keeps the others waiting; "" where nobody does
 */

export const SEVERITIES = /** @type {const} */ (["error", "warning", "info"]);
const SHOWN = WORDING.limits.session_findings;

/**
 * @param {any} document of the `summary` tool
 * @returns {Glance}
 */
export function glanceOf(document) {
  /** @type {any[]} */
  const hosts = document.hosts ?? [document];
  const isOne = hosts.length === 1;
  const findings = { error: 0, warning: 0, info: 0 };
  const peaks = [], first = [];
  /** @type {string[]} */
  const notable = [];
  for (const one of hosts) {
    const host = isOne ? "" : one.profile.host;
    for (const severity of SEVERITIES) findings[severity] += one.findings[severity];
    for (const finding of one.first) first.push({ ...finding, host });
    for (const { text } of one.notable) notable.push(isOne ? text : `${host}: ${text}`);
    for (const { allocator, peak_bytes } of one.memory?.allocators ?? []) {
      peaks.push({ bytes: peak_bytes, of: isOne ? allocator : `${allocator} on ${host}` });
    }
  }
  first.sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity)
    || other.gain_share - one.gain_share);
  const highest = peaks.reduce((best, peak) => (best && best.bytes >= peak.bytes ? best : peak),
    /** @type {{bytes: number, of: string} | null} */ (null));
  return {
    duration: most(hosts.map((one) => one.profile.duration_ps || null)),
    steps: most(hosts.map((one) => one.time?.steps ?? null)),
    step: most(hosts.map((one) => one.time?.times?.median_ps ?? null)),
    peak: highest?.bytes ?? null, peakOf: highest?.of ?? "",
    findings, first: first.slice(0, SHOWN), notable,
    straggler: document.straggler ? document.straggler_text : "",
  };
}

/** @param {(number | null)[]} values */
function most(values) {
  return values.reduce((best, value) =>
    (value !== null && (best === null || value > best) ? value : best), null);
}
