/** The HTTP service: every number of the page comes from here. */

const TOKEN = "peakline.token";

/**
 * @typedef {object} Asked
 * @property {Record<string, string | number | boolean | null | undefined>} [query] null: left out
 * @property {AbortSignal} [signal]
 * @property {string} [method]
 * @property {unknown} [body] sent as JSON, a Blob as it is
 * @property {Record<string, string>} [headers]
 */
/** @typedef {{kind: string, count: number, detail: string}} Warning */
/** @typedef {Omit<import("../shell/router.js").SessionDocument, "tools"> & {tools: string[] | null}} ListedSession null: nobody looked for them */
/**
 * @template T
 * @typedef {object} Answer
 * @property {T} data
 * @property {(Warning | string)[]} warnings what was lost or guessed while reading
 * @property {string[]} notes what was left out or ignored
 */

/** An error that the service told, or that kept it from answering (status 0). */
export class ProblemError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   */
  constructor(status, code, detail) {
    super(detail);
    this.name = "ProblemError";
    this.status = status;
    this.code = code;
  }
}

/** Answers that were requested before the view was there, by their address. @type {Map<string, Promise<Response>>} */
const ahead = new Map();
/** What is still to be sent so, once an answer to what was sent is there. @type {Promise<unknown> | null} */
let planned = null;
let isOver = false;

/**
 * Hold every question until it is known which others are sent ahead: none is sent twice.
 * @param {Promise<unknown>} sending
 */
export function planAhead(sending) {
  planned = sending;
  void sending.finally(() => void (planned = null));
}

/**
 * Send a question now; who sends the same first gets its answer.
 * @param {string} path under `/api/`
 * @param {NonNullable<Asked["query"]>} [query]
 * @returns {Promise<any>} the answer as JSON; null for an error, which is the other's to show
 */
export function askAhead(path, query = {}) {
  if (isOver) return Promise.resolve(null);
  const answer = send(path, { query }, token());
  ahead.set(addressOf(path, query), answer);
  return answer.then((response) => response.ok ? response.clone().json() : null).catch(() => null);
}

/** The reader went elsewhere: what nobody took until then is out of date. */
export function forgetAhead() {
  ahead.clear();
  planned = null;
  isOver = true;
}

/** How many answers are on their way, and who waits for the last of them. */
let running = 0;
/** @type {Set<() => void>} */
const waiting = new Set();

/**
 * Until no answer is on its way; also when `signal` aborts.
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function whenQuiet(signal) {
  return new Promise((resolve) => {
    const done = () => {
      waiting.delete(done);
      resolve();
    };
    waiting.add(done);
    signal.addEventListener("abort", done, { once: true });
    // A view that needs nothing of the service has nothing to wait for.
    setTimeout(quiet);
  });
}

function quiet() {
  if (!running) for (const done of [...waiting]) done();
}

/** Who asks for the token when the server wants one; set by the shell. */
export const access = {
  /** @type {() => Promise<string | null>} */
  ask: async () => null,
};

/**
 * The answer as JSON.
 * @param {string} path under `/api/`
 * @param {Asked} [requested]
 * @returns {Promise<Answer<any>>}
 */
export async function json(path, requested = {}) {
  const response = await request(path, requested);
  return { data: await response.json(), ...noticesOf(response) };
}

/**
 * A page of the list of sessions, of which nobody looks into the profiles.
 * @param {{root: string, search?: string, sort?: string, offset?: number, limit?: number, tools: false}} query without a limit all
 * @param {AbortSignal} signal
 * @returns {Promise<{sessions: ListedSession[], matching: number, all: number}>}
 */
export async function sessionPage(query, signal) {
  const response = await request("sessions", { query, signal });
  const number = (/** @type {string} */ name) => Number(response.headers.get(`Peakline-${name}`));
  return { sessions: await response.json(), matching: number("Rows"), all: number("Sessions") };
}

/**
 * The answer as bytes.
 * @param {string} path
 * @param {Asked} [requested]
 * @returns {Promise<Answer<ArrayBuffer>>}
 */
export async function binary(path, requested = {}) {
  const response = await request(path, requested);
  return { data: await response.arrayBuffer(), ...noticesOf(response) };
}

/**
 * The lines of a streamed answer, each parsed.
 * @param {string} path
 * @param {Asked} requested
 * @returns {AsyncGenerator<any>}
 */
export async function* lines(path, requested) {
  const headers = { Accept: "application/x-ndjson", ...requested.headers };
  const response = await request(path, { ...requested, headers });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (rest + (value ?? "")).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part) yield JSON.parse(part);
    if (done) break;
  }
  if (rest) yield JSON.parse(rest);
}

/**
 * The path of a session's resource.
 * @param {string} session
 * @param {...string} parts
 */
export function sessionPath(session, ...parts) {
  return ["sessions", session, ...parts].map(encodeURIComponent).join("/");
}

/**
 * A question to the service; asks for the token once where it is wanted. Raises ProblemError, or
 * the AbortError of `signal`.
 * @param {string} path
 * @param {Asked} requested
 * @returns {Promise<Response>} of a status that is no error
 */
export async function request(path, requested) {
  const shown = token();
  const response = (await sentAhead(path, requested)) ?? (await send(path, requested, shown));
  requested.signal?.throwIfAborted();
  if (response.ok) return response;
  // Always read: a request is not over, and holds what it needs, until its answer is.
  const problem = await problemOf(response);
  if (response.status === 401) {
    // Another question may have been answered meanwhile.
    const given = token() !== shown ? token() : await access.ask();
    if (given) {
      sessionStorage.setItem(TOKEN, given);
      const again = await send(path, requested, given);
      if (again.ok) return again;
      if (again.status === 401) sessionStorage.removeItem(TOKEN);
      throw await problemOf(again);
    }
  }
  throw problem;
}

/**
 * @param {string} path
 * @param {Asked} requested
 * @param {string | null} shown
 */
async function send(path, { query = {}, signal, method = "GET", body, headers = {} }, shown) {
  /** @type {Record<string, string>} */
  const sent = { ...headers };
  if (shown) sent["Authorization"] = `Bearer ${shown}`;
  /** @type {BodyInit | undefined} */
  let content;
  if (body instanceof Blob) {
    content = body;
    sent["Content-Type"] ??= "application/octet-stream";
  } else if (body !== undefined) {
    content = JSON.stringify(body);
    sent["Content-Type"] = "application/json";
  }
  running += 1;
  try {
    return await fetch(addressOf(path, query), {
      method, signal: signal ?? null, headers: sent, body: content ?? null, cache: "no-cache",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ProblemError(0, "UNAVAILABLE", "the server does not answer; is it still running?");
  } finally {
    running -= 1;
    // What a view asks next because of this answer goes first.
    setTimeout(quiet);
  }
}

/**
 * The answer that `askAhead` was called for, once.
 * @param {string} path
 * @param {Asked} requested
 */
async function sentAhead(path, { query = {}, method = "GET" }) {
  if (method !== "GET") return null;
  const address = addressOf(path, query);
  if (!ahead.has(address)) await planned;
  const result = ahead.get(address);
  ahead.delete(address);
  return result ?? null;
}

/**
 * @param {string} path
 * @param {NonNullable<Asked["query"]>} query
 */
function addressOf(path, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return `api/${path}${text ? `?${text}` : ""}`;
}

/**
 * The error that an answer tells.
 * @param {Response} response
 */
export async function problemOf(response) {
  try {
    const { code, detail, title } = await response.json();
    return new ProblemError(response.status, code ?? "", detail ?? title ?? response.statusText);
  } catch {
    return new ProblemError(response.status, "", `the server answered ${response.status}`);
  }
}

/**
 * What the service says beside an answer.
 * @param {Response} response
 * @returns {{warnings: (Warning | string)[], notes: string[]}}
 */
export function noticesOf(response) {
  return {
    warnings: list(response.headers.get("Peakline-Warnings")),
    notes: list(response.headers.get("Peakline-Notes")),
  };
}

/** @param {string | null} header */
function list(header) {
  return header ? JSON.parse(header) : [];
}

/** The token that the reader gave; null where none was wanted yet. */
export function token() {
  return sessionStorage.getItem(TOKEN);
}

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}
