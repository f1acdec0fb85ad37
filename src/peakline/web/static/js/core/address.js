/**
 * What is shown is in the address, so that a link shows a colleague the same thing.
 *
 * `#/` is the list of sessions, `#/compare` two of them, `#/session/NAME/VIEW` a view of one; what a
 * view shows of it are its parameters, `?name=value`.
 */

/**
 * @typedef {object} Address
 * @property {string} view sessions, compare, or one of a session's
 * @property {string} session its name, or ""
 * @property {Record<string, string>} params
 */

export const SESSION_VIEWS = ["job", "summary", "memory", "timeline", "steps", "graph", "sql"];

/**
 * @param {string} hash of an address, with or without `#`
 * @returns {Address | null} null where it names nothing
 */
export function parseAddress(hash) {
  const [path = "", query = ""] = split(hash.replace(/^#/, ""), "?");
  const names = path.replace(/^\//, "").replace(/\/$/, "");
  const parts = names ? names.split("/").map(decode) : [];
  /** @type {Record<string, string>} */
  const params = {};
  for (const [name, value] of new URLSearchParams(query)) params[name] = value;
  if (parts.length === 0) return { view: "sessions", session: "", params };
  if (parts[0] === "compare" && parts.length === 1) return { view: "compare", session: "", params };
  const [kind, session, view = "summary"] = parts;
  if (kind !== "session" || !session || parts.length > 3 || !SESSION_VIEWS.includes(view)) {
    return null;
  }
  return { view, session, params };
}

/**
 * @param {Address} address
 * @returns {string} beginning with `#/`
 */
export function formatAddress({ view, session, params }) {
  const path = session
    ? `session/${encodeURIComponent(session)}/${view}`
    : view === "sessions" ? "" : view;
  const query = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== ""),
  ).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

/**
 * Parameters with changes: null or "" takes one away.
 * @param {Record<string, string>} params
 * @param {Record<string, string | number | boolean | null | undefined>} changes
 */
export function changed(params, changes) {
  const made = { ...params };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) delete made[name];
    else made[name] = String(value);
  }
  return made;
}

/**
 * A whole number of the address, or null.
 * @param {string | undefined} text
 */
export function number(text) {
  if (!text || !/^-?\d{1,16}$/.test(text)) return null;
  return Number(text);
}

/**
 * @param {string} text
 * @param {string} at
 */
function split(text, at) {
  const place = text.indexOf(at);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
