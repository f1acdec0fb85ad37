/** What a view gets: where to draw, what is asked for, how to ask the service. */

import { binary, json, sessionPath } from "../core/api.js";
import { formatAddress } from "../core/address.js";

const REPLACE_MS = 200;

/** @typedef {import("../core/api.js").Asked["query"]} Query */

export class Context {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {Record<string, string | number | boolean | null | undefined>} */
  #waiting = {};

  /**
   * @param {import("./router.js").Router} router
   * @param {HTMLElement} main
   * @param {import("../core/address.js").Address} address
   * @param {AbortSignal} signal ends with the view: give it to every question
   * @param {Promise<import("./router.js").SessionDocument> | null} document
   */
  constructor(router, main, address, signal, document) {
    this.router = router;
    this.main = main;
    this.view = address.view;
    this.session = address.session;
    this.params = address.params;
    this.host = address.params["host"] ?? "";
    this.root = address.params["root"] ?? "";
    this.signal = signal;
    /** The session's hosts and tools, while they come; null outside of sessions. */
    this.document = document;
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /**
   * Put into the address what is shown now, a moment later, so that zooming does not flood it; with
   * `push` at once and so that Back undoes it.
   * @param {Record<string, string | number | boolean | null | undefined>} changes null: not there
   * @param {boolean} [push]
   */
  change(changes, push = false) {
    if (this.signal.aborted) return;
    Object.assign(this.#waiting, changes);
    clearTimeout(this.#timer);
    const notify = () => {
      const waiting = this.#waiting;
      this.#waiting = {};
      this.router.change(waiting, push);
    };
    if (push) notify();
    else this.#timer = setTimeout(notify, REPLACE_MS);
  }

  /** Another address is shown now: what still waits to be told was about the one before. */
  forget() {
    clearTimeout(this.#timer);
    this.#waiting = {};
  }

  /**
   * The address of another view of this session, its host kept.
   * @param {string} view
   * @param {Record<string, string | number>} [params]
   */
  link(view, params = {}) {
    return this.linkTo(this.session, view, { host: this.host, ...params });
  }

  /**
   * The address of a view of any session, or of `compare` with session "".
   * @param {string} session
   * @param {string} view
   * @param {Record<string, string | number>} [params]
   */
  linkTo(session, view, params = {}) {
    /** @type {Record<string, string>} */
    const texts = { root: this.root };
    for (const [name, value] of Object.entries(params)) texts[name] = String(value);
    return formatAddress({ view, session, params: texts });
  }

  /**
   * A tool's answer as JSON, of the host that is shown.
   * @param {string} name
   * @param {Query} [query]
   * @param {AbortSignal} [signal] besides the view's own
   */
  tool(name, query = {}, signal = this.signal) {
    return json(sessionPath(this.session, "tools", name), { query: this.#requested(query), signal });
  }

  /**
   * A tool's answer as bytes.
   * @param {string} name
   * @param {Query} [query]
   * @param {AbortSignal} [signal]
   */
  toolBytes(name, query = {}, signal = this.signal) {
    return binary(sessionPath(this.session, "tools", name), { query: this.#requested(query), signal });
  }

  /**
   * The rows of a query about the host that is shown, as objects.
   * @param {string} query
   * @param {AbortSignal} [signal]
   */
  sql(query, signal = this.signal) {
    return json(sessionPath(this.session, "sql"), {
      method: "POST", query: { root: this.root }, signal,
      body: { query, format: "json", ...(this.host ? { host: this.host } : {}) },
    });
  }

  /**
   * Anything else under the session's path, such as `figures/NAME`.
   * @param {string[]} parts
   * @param {Query} [query]
   */
  resource(parts, query = {}) {
    return json(sessionPath(this.session, ...parts),
      { query: this.#requested(query), signal: this.signal });
  }

  /** @param {Query} query */
  #requested(query) {
    return { root: this.root, host: this.host, ...query };
  }
}
