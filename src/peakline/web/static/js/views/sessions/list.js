/** The table of sessions: what the list says at once, and what each says when it is in view. */

import { fill, h } from "../../core/dom.js";
import { bytes, counted, date, time } from "../../core/format.js";
import { DataTable } from "../../core/table.js";
import { SEVERITIES } from "./glance.js";
import { isSortedLater } from "./question.js";
import { keyOf, Summaries } from "./summaries.js";
import { viewsOf } from "../../core/views.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/api.js").ListedSession} ListedSession */
/**
 * @typedef {object} Row
 * @property {ListedSession} session
 * @property {string} name
 * @property {number} hosts
 * @property {string | null} modified
 * @property {number | null} bytes
 * @property {number | null} duration
 * @property {number | null} steps
 * @property {number | null} peak
 * @property {number | null} findings how bad they are, as a number to sort by
 * @property {Record<string, HTMLElement>} cells of what comes later
 */
/**
 * @typedef {object} ListOptions
 * @property {string} sort
 * @property {(sort: string) => void} onSort
 * @property {(row: Row) => void} onChoose
 * @property {(row: Row) => boolean} isChosen
 * @property {(name: string, isPicked: boolean) => void} onPick
 * @property {(name: string) => boolean} isPicked
 * @property {(name: string, view: string) => string} link
 * @property {(row: Row) => void} onKnown its summary has come
 * @property {(first: number, last: number) => void} onSeen rows are in view
 * @property {string} root
 * @property {AbortSignal} signal
 */

const RESORT_MS = 400;
/** One error is worse than any number of warnings that a session has. */
const WEIGHT = 1e4;

export class SessionList {
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** @type {Row[]} */
  #shown = [];
  #resort = 0;

  /** @param {ListOptions} options */
  constructor(options) {
    this.options = options;
    this.summaries = new Summaries(options.root, options.signal,
      (session) => this.#rows.get(keyOf(session))?.cells["findings"]?.isConnected ?? false,
      (session) => this.#arrived(session));
    this.table = new DataTable({
      label: "Sessions", columns: this.#columns(), sort: options.sort, remote: !isSortedLater(options.sort),
      onSort: (sort) => options.onSort(sort),
      onSeen: (first, last) => options.onSeen(first, last),
      onChoose: (row) => options.onChoose(row), isChosen: (row) => options.isChosen(row),
      nothing: "No session matches.",
    });
    this.table.element.addEventListener("keydown", (event) => {
      const row = /** @type {Row | undefined} */ (this.table.active);
      if (event.key !== " " || event.target !== this.table.element || !row) return;
      event.preventDefault();
      options.onPick(row.name, !options.isPicked(row.name));
      this.table.refresh();
    });
    options.signal.addEventListener("abort", () => clearTimeout(this.#resort));
  }

  get element() {
    return this.table.element;
  }

  /**
   * @param {ListedSession[]} sessions by their place, with holes where they did not come yet
   */
  show(sessions) {
    this.#shown = new Array(sessions.length);
    // Holes are passed over.
    sessions.forEach((session, place) => void (this.#shown[place] = this.rowOf(session)));
    this.#shown.forEach((row) => this.#draw(row));
    this.#askForAll(this.table.sort);
    this.table.options.remote = !isSortedLater(this.table.sort);
    this.table.setRows(this.#shown);
  }

  /**
   * The row of a session, also of one that is not in the list now.
   * @param {ListedSession} session
   */
  rowOf(session) {
    const key = keyOf(session), known = this.#rows.get(key);
    if (known) {
      known.session = { ...session, tools: session.tools ?? known.session.tools };
      return known;
    }
    const row = rowOf(session);
    this.#rows.set(key, row);
    return row;
  }

  /**
   * Bring a session's row into view.
   * @param {string} name
   */
  reveal(name) {
    const place = this.table.rows.findIndex((row) => row?.name === name);
    if (place >= 0) this.table.reveal(place);
  }

  /** @param {string} name */
  row(name) {
    return this.#shown.find((row) => row?.name === name);
  }

  /**
   * @param {Row} row
   * @returns {import("./summaries.js").State}
   */
  stateOf(row) {
    return this.summaries.of(row.session);
  }

  /** @returns {import("../../core/table.js").Column[]} */
  #columns() {
    const { link, isPicked, onPick } = this.options;
    const later = (/** @type {string} */ key) => (/** @type {Row} */ row) => this.#later(row, key);
    return [
      { key: "pick", title: "", unsorted: true, width: "2.4rem", help: "Pick two to ten to compare",
        cell: (row) => {
          const box = h("input", { type: "checkbox", "aria-label": `Compare ${row.name}` });
          box.checked = isPicked(row.name);
          box.addEventListener("click", (event) => event.stopPropagation());
          box.addEventListener("change", () => {
            onPick(row.name, box.checked);
          });
          return box;
        } },
      { key: "name", title: "Session", width: "minmax(13rem, 1fr)",
        cell: (row) => h("a", { href: link(row.name, "summary"), title: row.name,
          onclick: (/** @type {Event} */ event) => event.stopPropagation() }, row.name) },
      { key: "modified", title: "When", width: "9.5rem", help: "When its newest file was written",
        cell: (row) => row.modified ? h("span", { title: row.modified }, date(row.modified)) : "–" },
      { key: "duration", title: "Duration", kind: "time", width: "6.8rem", cell: later("duration") },
      { key: "steps", title: "Steps", kind: "count", width: "5rem", cell: later("steps") },
      { key: "peak", title: "Memory peak", kind: "bytes", width: "8.2rem", cell: later("peak"),
        help: "The largest peak of an allocator" },
      { key: "findings", title: "Findings", kind: "count", width: "11.5rem", cell: later("findings"),
        help: "What stands out: errors, warnings, information" },
      { key: "hosts", title: "Hosts", kind: "count", width: "4.8rem",
        cell: (row) => h("span", { title: row.session.hosts.join(", ") }, String(row.hosts)) },
      { key: "bytes", title: "Size", kind: "bytes", width: "6.5rem" },
      { key: "views", title: "Views", unsorted: true, width: "19rem",
        cell: later("views") },
    ];
  }

  /** @param {Row} row */
  #views(row) {
    return h("span", { class: "views" }, ...viewsOf(row.session).map(({ view, text }) =>
      h("a", { href: this.options.link(row.name, view), tabindex: -1,
        onclick: (/** @type {Event} */ event) => event.stopPropagation() }, text)));
  }

  /**
   * The cell of what is asked for when the row is in view; it stays the same element, so that what
   * comes is put into it without drawing the table anew.
   * @param {Row} row
   * @param {string} key
   */
  #later(row, key) {
    let cell = row.cells[key];
    if (!cell) {
      cell = row.cells[key] = h("span", { class: "later" });
      this.#fill(row, key, cell);
    }
    if (key === "findings") this.summaries.want(row.session);
    return cell;
  }

  /** @param {ListedSession} session */
  #arrived(session) {
    const row = this.#rows.get(keyOf(session));
    if (!row) return;
    row.session = { ...row.session, tools: this.summaries.tools(row.session) };
    this.#draw(row);
    if (!["known", "failed"].includes(this.stateOf(row).kind) && !row.session.tools) return;
    this.options.onKnown(row);
    if (isSortedLater(this.table.sort) && !this.#resort) {
      this.#resort = setTimeout(() => {
        this.#resort = 0;
        this.table.setRows(this.#shown);
      }, RESORT_MS);
    }
  }

  /** @param {Row} row */
  #draw(row) {
    const { glance } = this.stateOf(row);
    if (glance) {
      const { error, warning, info } = glance.findings;
      Object.assign(row, { duration: glance.duration, steps: glance.steps, peak: glance.peak,
        findings: error * WEIGHT * WEIGHT + warning * WEIGHT + info });
    }
    for (const [key, cell] of Object.entries(row.cells)) this.#fill(row, key, cell);
  }

  /**
   * @param {Row} row
   * @param {string} key
   * @param {HTMLElement} cell
   */
  #fill(row, key, cell) {
    const { kind, glance, reason } = this.stateOf(row);
    if (key === "views") {
      fill(cell, this.#views(row));
      return;
    }
    cell.ariaBusy = String(key === "findings" && (kind === "waiting" || kind === "asking"));
    if (!glance) {
      fill(cell, key === "findings" ? this.#meanwhile(row, kind, reason ?? "")
        : kind === "none" || kind === "failed" ? "–" : "");
      return;
    }
    if (key === "findings") fill(cell, ...badges(glance));
    else if (key === "duration") cell.textContent = time(glance.duration, 3);
    else if (key === "steps") {
      cell.textContent = glance.steps ? glance.steps.toLocaleString("en-US") : "–";
      if (glance.step) cell.title = `${time(glance.step, 3)} each (median)`;
    } else {
      cell.textContent = bytes(glance.peak);
      cell.title = glance.peakOf;
    }
  }

  /**
   * @param {Row} row
   * @param {import("./summaries.js").State["kind"]} kind
   * @param {string} reason
   */
  #meanwhile(row, kind, reason) {
    switch (kind) {
      case "large":
        return h("button", { type: "button", class: "plain small",
          title: `${bytes(row.bytes)}: this takes some seconds`,
          onclick: (/** @type {Event} */ event) => {
            event.stopPropagation();
            this.summaries.want(row.session, true);
          } }, "Look inside");
      case "failed": return h("span", { class: "bad", title: reason }, "cannot be read");
      case "none":
        return h("span", { class: "quiet" }, "–");
      default: return h("span", { class: "quiet" }, kind === "asking" ? "reading …" : "…");
    }
  }

  /**
   * Sorting by what only the profiles say asks about all of them, though never about large ones.
   * @param {string} sort
   */
  #askForAll(sort) {
    this.summaries.all = isSortedLater(sort);
    if (this.summaries.all) this.#shown.forEach((row) => this.summaries.want(row.session));
  }
}

/**
 * @param {ListedSession} session
 * @returns {Row}
 */
function rowOf(session) {
  return { session, name: session.session_id, hosts: session.hosts.length,
    modified: session.modified ?? null, bytes: session.bytes ?? null,
    duration: null, steps: null, peak: null, findings: null, cells: {} };
}

/** @param {import("./glance.js").Glance} glance */
function badges({ findings, first, notable }) {
  const severities = SEVERITIES.filter((severity) => findings[severity] > 0);
  if (!severities.length && notable.length) {
    return [h("span", { class: "quiet", title: notable.join("\n") }, WORDING.summary.notable)];
  }
  if (!severities.length) return [h("span", { class: "quiet" }, WORDING.summary.nothing)];
  const title = first.map((finding) => finding.title).join("\n");
  const phrase = { error: "error", warning: "warning", info: "info" };
  return severities.map((severity) => h("span", { class: `badge ${severity}`, title },
    severity === "info" ? `${findings.info} info` : counted(findings[severity], phrase[severity])));
}
