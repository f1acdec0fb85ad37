/** What sessions say at a glance, asked for as they come into view: two at a time, no more. */

import { json, isAbort, ProblemError, sessionPath } from "../../core/api.js";
import { glanceOf } from "./glance.js";

/** @typedef {import("./glance.js").Glance} Glance */
/** @typedef {import("../../core/api.js").ListedSession} ListedSession */
/**
 * @typedef {object} State
 * @property {"none" | "large" | "waiting" | "asking" | "known" | "failed"} kind none: no tool
 * says anything; large: only read when the reader wants it
 * @property {Glance} [glance]
 * @property {string} [reason]
 */

const AT_ONCE = 2;
/** Larger sessions take the server seconds: they are read when the reader says so. */
const LARGE_BYTES = 200e6;
const BUSY_MS = 2000;

export class Summaries {
  /** @type {Map<string, State>} */
  #states = new Map();
  /** @type {Map<string, string[]>} */
  #tools = new Map();
  /** Those that the reader wants to be looked into, though they are large. @type {Set<string>} */
  #wanted = new Set();
  /** @type {ListedSession[]} */
  #waiting = [];
  #asking = 0;

  /**
   * @param {string} root
   * @param {AbortSignal} signal
   * @param {(session: ListedSession) => boolean} isSeen whether its row is in view
   * @param {(session: ListedSession) => void} notify its state changed
   */
  constructor(root, signal, isSeen, notify) {
    this.root = root;
    this.signal = signal;
    this.isSeen = isSeen;
    this.notify = notify;
    /** Whether rows that are out of view are asked about, too: the list is sorted by what they say. */
    this.all = false;
  }

  /**
   * @param {ListedSession} session
   * @returns {State}
   */
  of(session) {
    const known = this.#states.get(keyOf(session));
    if (known) return known;
    const tools = this.tools(session);
    // Which tools there are says the session itself, which is looked into when its row is in view.
    if (!tools) return { kind: "waiting" };
    if (!tools.includes("summary")) return { kind: "none" };
    return { kind: (session.bytes ?? 0) > LARGE_BYTES ? "large" : "waiting" };
  }

  /**
   * The tools of a session, null where nobody looked yet.
   * @param {ListedSession} session
   */
  tools(session) {
    return this.#tools.get(keyOf(session)) ?? session.tools;
  }

  /**
   * Ask about a session when its turn comes; a large one only with `large`.
   * @param {ListedSession} session
   */
  want(session, large = false) {
    const { kind } = this.of(session);
    if (kind !== "waiting" && !(large && kind === "large")) return;
    if (this.#states.has(keyOf(session))) return;
    this.#set(session, { kind: "waiting" });
    if (large) {
      this.#wanted.add(keyOf(session));
      this.#waiting.unshift(session);
    } else this.#waiting.push(session);
    // Once the table has put the row into the page, it can be told whether it is in view.
    queueMicrotask(() => this.#next());
  }

  #next() {
    while (this.#asking < AT_ONCE && this.#waiting.length && !this.signal.aborted) {
      const seen = this.#waiting.findIndex((session) => this.isSeen(session));
      if (seen < 0 && !this.all) {
        // Rows that were scrolled past: forgotten until they come into view again.
        for (const session of this.#waiting.splice(0)) this.#states.delete(keyOf(session));
        return;
      }
      const [session] = this.#waiting.splice(Math.max(seen, 0), 1);
      if (session) void this.#ask(session);
    }
  }

  /** @param {ListedSession} session */
  async #ask(session) {
    this.#asking += 1;
    this.#set(session, { kind: "asking" });
    const requested = { query: { root: this.root }, signal: this.signal };
    try {
      if (!this.tools(session)) {
        const { data, notes } = await json(sessionPath(session.session_id), requested);
        this.#tools.set(keyOf(session), data.tools);
        // Its own line is all that is noted of one session, and there only where no tool can read it.
        const [reason] = notes;
        if (reason) {
          this.#set(session, { kind: "failed", reason: reason.replace(/^session .*?: /s, "") });
          return;
        }
      }
      const isLarge = (session.bytes ?? 0) > LARGE_BYTES && !this.#wanted.has(keyOf(session));
      if (!this.tools(session)?.includes("summary") || isLarge) {
        this.#states.delete(keyOf(session));
        this.notify(session);
        return;
      }
      const { data } = await json(sessionPath(session.session_id, "tools", "summary"), requested);
      this.#set(session, { kind: "known", glance: glanceOf(data) });
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof ProblemError && error.status === 429) {
        await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
        if (this.signal.aborted) return;
        this.#states.set(keyOf(session), { kind: "waiting" });
        this.#waiting.push(session);
      } else {
        const reason = error instanceof Error ? error.message : String(error);
        this.#set(session, { kind: "failed", reason });
      }
    } finally {
      this.#asking -= 1;
      this.#next();
    }
  }

  /**
   * @param {ListedSession} session
   * @param {State} state
   */
  #set(session, state) {
    this.#states.set(keyOf(session), state);
    this.notify(session);
  }
}

/**
 * A session that was written again is another one.
 * @param {ListedSession} session
 */
export function keyOf(session) {
  return `${session.session_id}\n${session.bytes}\n${session.modified}`;
}
