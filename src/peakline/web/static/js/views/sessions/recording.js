/** A capture as it goes: what each host does, the end of it, and what came of it. */

import { isAbort, lines, ProblemError } from "../../core/api.js";
import { announce, fill, h } from "../../core/dom.js";
import { bytes, counted, time } from "../../core/format.js";

const STATES = /** @type {Record<string, string>} */ ({
  waiting: "waiting", connecting: "connecting", recording: "recording", receiving: "receiving",
  retrying: "trying again", stored: "stored", saved_by_host: "saved by the host itself",
  empty: "recorded nothing", failed: "failed",
});
const GOOD = ["stored", "saved_by_host"], BAD = ["empty", "failed"];
const TICK_MS = 100;

export class Recording {
  /** @type {Map<string, {state: HTMLElement, detail: HTMLElement}>} */
  #hosts = new Map();
  #ends = new AbortController();
  isRunning = false;

  /**
   * @param {import("./capture.js").Asked} requested
   * @param {import("../../core/server.js").ServerDocument} server
   * @param {string} root
   * @param {import("./capture.js").Place} place
   * @param {() => void} onBack the reader wants to change something
   */
  constructor(requested, server, root, place, onBack) {
    this.requested = requested;
    this.server = server;
    this.root = root;
    this.place = place;
    this.onBack = onBack;
    this.body = h("tbody", {});
    this.table = h("table", { class: "plain hosts", hidden: true },
      h("caption", { class: "unseen" }, "Hosts"),
      h("thead", {}, h("tr", {}, ...["Host", "State", "Detail"].map((title) =>
        h("th", { scope: "col" }, title)))), this.body);
    this.progress = h("progress", { max: requested.duration_ms, value: 0, "aria-label": "Recording" });
    this.outcome = h("div", { class: "stack", role: "status" });
    this.buttons = h("div", { class: "row-of" });
    this.element = h("div", { class: "stack capture" }, this.progress, this.table, this.outcome,
      this.buttons);
  }

  /** End it; the hosts' profilers are freed and nothing is kept. */
  cancel() {
    this.#ends.abort();
  }

  async run() {
    this.isRunning = true;
    const began = performance.now();
    const cancel = h("button", { type: "button", onclick: () => this.cancel() }, "Cancel");
    fill(this.buttons, cancel);
    cancel.focus();
    const tick = setInterval(() => this.#tick(performance.now() - began), TICK_MS);
    try {
      for await (const event of lines("captures", { method: "POST", query: { root: this.root },
        body: this.requested, signal: this.#ends.signal })) this.#take(event);
      if (this.isRunning) throw new ProblemError(0, "", "the answer ended before the capture did");
    } catch (error) {
      this.#failed(error);
    } finally {
      clearInterval(tick);
    }
  }

  /** @param {number} spent ms */
  #tick(spent) {
    if (!this.isRunning) return;
    const { duration_ms } = this.requested;
    const isRecorded = spent >= duration_ms;
    if (isRecorded) this.progress.removeAttribute("value");
    else this.progress.value = spent;
    fill(this.outcome, isRecorded
      ? `${time(duration_ms * 1e9)} recorded; the profiles are on their way (${time(spent * 1e9, 2)})`
      : `recording: ${time(spent * 1e9, 2)} of ${time(duration_ms * 1e9)}`);
  }

  /** @param {any} event */
  #take(event) {
    if (event.event === "progress") this.#host(event.host, event.state, event.detail);
    else if (event.event === "result") this.#result(event);
    else if (event.event === "error") {
      throw new ProblemError(event.status, event.code, event.detail);
    }
  }

  /**
   * @param {string} host
   * @param {string} state
   * @param {string} detail
   */
  #host(host, state, detail) {
    let row = this.#hosts.get(host);
    if (!row) {
      row = { state: h("td", {}), detail: h("td", { class: "detail" }) };
      this.#hosts.set(host, row);
      this.body.append(h("tr", {}, h("th", { scope: "row" }, host), row.state, row.detail));
      this.table.hidden = false;
    }
    const mark = GOOD.includes(state) ? "✓ " : BAD.includes(state) ? "✗ " : "";
    row.state.textContent = mark + (STATES[state] ?? state);
    row.state.className = GOOD.includes(state) ? "good" : BAD.includes(state) ? "bad" : "";
    row.detail.textContent = detail;
  }

  /** @param {any} result the document of the capture */
  #result({ session_id, empty_trace, outcomes, notes }) {
    this.#over();
    for (const { host, state, size, error, attempts } of outcomes) {
      const tries = attempts > 1 ? `; ${counted(attempts, "attempt")}` : "";
      this.#host(host, state, (error || (size ? bytes(size) : "")) + tries);
    }
    const retained = outcomes.filter((/** @type {any} */ one) => GOOD.includes(one.state)).length;
    const remarks = notes.map((/** @type {string} */ note) => h("p", { class: "quiet" }, note));
    if (empty_trace) {
      fill(this.outcome, h("p", {}, "No host recorded anything, so there is no session. Was a step "
        + "running? Record for longer."), remarks);
      this.#offer();
      return;
    }
    const isWhole = retained === outcomes.length;
    fill(this.outcome, h("p", { class: isWhole ? "good" : "warn" }, isWhole
      ? `Done: ${counted(retained, "host")} recorded.`
      : `${retained} of ${counted(outcomes.length, "host")} recorded; the session has what they recorded.`), remarks);
    const open = h("a", { class: "button primary", href: this.place.link(session_id, "summary") },
      `Open ${session_id}`);
    fill(this.buttons, open,
      h("a", { class: "button", href: this.place.link(session_id, "memory") }, "Memory"),
      h("a", { class: "button", href: this.place.link(session_id, "timeline") }, "Timeline"),
      h("button", { type: "button", onclick: this.onBack }, "Capture again"));
    open.focus();
    this.place.onStored();
    announce("the capture is stored");
  }

  /** @param {unknown} error */
  #failed(error) {
    this.#over();
    if (isAbort(error)) {
      for (const { state } of this.#hosts.values()) {
        if (!state.className) state.textContent = "cancelled";
      }
      fill(this.outcome, h("p", {}, "Cancelled: the hosts' profilers are free again, and nothing was stored."));
    } else {
      const reason = error instanceof Error ? error.message : String(error);
      const advice = adviceFor(error, this.server);
      fill(this.outcome, h("p", { class: "bad", role: "alert" }, reason), advice && h("p", {}, advice));
    }
    this.#offer();
  }

  #offer() {
    const back = h("button", { type: "button", onclick: this.onBack }, "Change and try again");
    fill(this.buttons, back);
    back.focus();
  }

  #over() {
    this.isRunning = false;
    this.progress.hidden = true;
  }
}

/**
 * What to do about a refusal.
 * @param {unknown} error
 * @param {import("../../core/server.js").ServerDocument} server
 */
function adviceFor(error, { profiler_port: port }) {
  if (!(error instanceof ProblemError)) return "";
  switch (error.status) {
    case 0: return "Look whether peakline serve still runs; its log has the rest.";
    case 403: return error.message.includes("--allow-capture")
      ? "HOST may be a name, a pattern or a network; whoever started the server can allow it."
      : "Whoever started the server decides what it may do.";
    case 409: return "Give another session name, or none.";
    case 429: return "Other captures are running; try again when they are done.";
    case 503: return `Does the job run, and did it start its profiler's server on port ${port}? `
      + "One that is profiled by somebody else is busy until that ends.";
    case 504: return "The hosts did not answer in time (--max-capture bounds it).";
    default: return "";
  }
}
