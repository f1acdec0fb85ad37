/** Where the palette looks: views, steps, ops, buffers and findings of a session, and sessions. */

import { json, sessionPage, sessionPath } from "../core/api.js";
import { formatAddress } from "../core/address.js";
import { evidenceLinks } from "../core/finding.js";
import { bytes, time } from "../core/format.js";
import { firstView, viewsOf } from "../core/views.js";

/** @typedef {import("../core/address.js").Address} Address */
/** @typedef {{group: string, text: string, note: string, href: string}} Place */
/**
 * @typedef {object} Where what is shown while the palette is open
 * @property {Address} address
 * @property {import("./router.js").SessionDocument | null} session
 * @property {AbortSignal} signal
 */

/** Of each kind so many are offered. */
const MOST = 6;

/** @type {((where: Where, text: string) => Promise<Place[]>)[]} those that answer at once first */
export const SOURCES = [views, steps, ops, buffers, findings, sessions];

/**
 * @param {Where} where
 * @param {string} text
 */
async function views({ address, session }, text) {
  if (!session) return [];
  const hasSummary = address.params["host"] || firstView(session) === "summary";
  const all = [...(hasSummary ? [{ view: "summary", text: "Summary" }] : []), ...viewsOf(session)];
  return all.filter((one) => has(one.text, text)).map((one) =>
    place(address, "View", one.text, "", one.view));
}

/**
 * @param {Where} where
 * @param {string} text
 */
async function steps(where, text) {
  if (!text || !where.session?.tools.includes("step_breakdown")) return [];
  const rows = await sql(where, "select name, device, wall_ps from step_breakdown "
    + `where contains(lower(name), ${literal(text)}) order by wall_ps desc limit ${MOST}`);
  return rows.map(({ name, device, wall_ps: wall }) => place(where.address, "Step", name,
    time(wall), "steps", { name, ...(device ? { device } : {}) }));
}

/**
 * @param {Where} where
 * @param {string} text
 */
async function ops(where, text) {
  if (!text || !where.session?.tools.includes("framework_op_stats")) return [];
  const rows = await sql(where, "select op, side, op_type, self_ps from op_stats where "
    + `contains(lower(op), ${literal(text)}) or contains(lower(op_type), ${literal(text)}) `
    + `order by self_ps desc limit ${MOST}`);
  return rows.map(({ op, side, self_ps: self }) => place(where.address, "Op", op,
    `${time(self)} of self time`, "steps", { part: "ops", op, side }));
}

/**
 * @param {Where} where
 * @param {string} text
 */
async function buffers(where, text) {
  if (!text || !where.session?.tools.includes("live_memory")) return [];
  const { data } = await tool(where, "live_memory", { search: text, limit: MOST });
  return data.rows.filter((/** @type {any} */ row) => row.record !== null)
    .map((/** @type {any} */ row) => place(where.address, "Buffer", row.op || "(no op)",
      `${bytes(row.bytes)} live at the peak`, "memory",
      { allocator: data.allocator, at: data.at_ps, buffer: row.record }));
}

/**
 * @param {Where} where
 * @param {string} text
 */
async function findings(where, text) {
  if (!text || !where.session?.tools.includes("summary")) return [];
  const { data } = await heldSummary(where);
  const one = data.hosts?.find((/** @type {any} */ host) => host.host === where.address.params["host"])
    ?? data.hosts?.[0] ?? data;
  const link = (/** @type {string} */ view, /** @type {Record<string, any>} */ params = {}) =>
    hrefOf(where.address, view, params);
  return one.first.filter((/** @type {any} */ finding) => has(`${finding.title} ${finding.kind}`, text))
    .slice(0, MOST).map((/** @type {any} */ finding) => ({ group: "Finding", text: finding.title,
      note: finding.severity, href: evidenceLinks(finding, link)[0]?.href ?? link("summary") }));
}

/** The latest summary, which is the same for every text: all that was typed waits for one answer. */
/** @type {{key: string, answer: Promise<import("../core/api.js").Answer<any>>} | null} */
let held = null;

/** The palette is closed: what is wanted next time may have changed. */
export function forgetAnswers() {
  held = null;
}

/** @param {Where} where */
function heldSummary({ address: { session, params } }) {
  const { root = "", host = "" } = params;
  const key = JSON.stringify([root, session, host]);
  if (held?.key !== key) {
    // Without the signal of one search: the next one wants it, too.
    const answer = json(sessionPath(session, "tools", "summary"),
      { query: { root, host, part: "findings" } });
    held = { key, answer };
    answer.catch(() => void (held?.answer === answer && (held = null)));
  }
  return held.answer;
}

/**
 * @param {Where} where
 * @param {string} text
 */
async function sessions({ address, signal }, text) {
  const { root } = address.params;
  const result = await sessionPage({ root: root ?? "", search: text, limit: MOST + 1, tools: false }, signal);
  return result.sessions.filter((one) => one.session_id !== address.session).slice(0, MOST).map((one) =>
    ({ group: "Session", text: one.session_id, note: one.bytes ? bytes(one.bytes) : "",
      href: formatAddress({ view: "summary", session: one.session_id,
        params: root ? { root } : {} }) }));
}

/**
 * @param {Where} where
 * @param {string} query
 * @returns {Promise<any[]>}
 */
async function sql({ address, signal }, query) {
  const { host, root } = address.params;
  const { data } = await json(sessionPath(address.session, "sql"), { method: "POST", query: { root },
    signal, body: { query, format: "json", ...(host ? { host } : {}) } });
  return data;
}

/**
 * @param {Where} where
 * @param {string} name
 * @param {Record<string, string | number>} query
 */
function tool({ address, signal }, name, query) {
  const { host, root } = address.params;
  return json(sessionPath(address.session, "tools", name), { query: { root, host, ...query }, signal });
}

/**
 * @param {Address} address
 * @param {string} group
 * @param {string} text
 * @param {string} note
 * @param {string} view
 * @param {Record<string, string | number>} [params]
 * @returns {Place}
 */
function place(address, group, text, note, view, params = {}) {
  return { group, text, note, href: hrefOf(address, view, params) };
}

/**
 * @param {Address} address
 * @param {string} view
 * @param {Record<string, string | number>} params
 */
function hrefOf({ session, params: { root, host } }, view, params) {
  const texts = Object.entries({ ...(root ? { root } : {}), ...(host ? { host } : {}), ...params })
    .map(([name, value]) => [name, String(value)]);
  return formatAddress({ view, session, params: Object.fromEntries(texts) });
}

/**
 * @param {string} whole
 * @param {string} text
 */
function has(whole, text) {
  return whole.toLowerCase().includes(text.toLowerCase());
}

/** A text of SQL, in lower case. @param {string} text */
function literal(text) {
  return `'${text.toLowerCase().replace(/'/g, "''")}'`;
}
