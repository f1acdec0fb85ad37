/** The sessions of a log directory: what there is, what stands out, and how to get more. */

import { json, sessionPath, sessionPage } from "../../core/api.js";
import { formatAddress } from "../../core/address.js";
import { commandOf } from "../../core/command.js";
import { comparedOf, comparedParams, textsOf } from "../../core/compared.js";
import { copyButton } from "../../core/copy.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { counted } from "../../core/format.js";
import { isTyping } from "../../core/gestures.js";
import { serverDocument } from "../../core/server.js";
import { failed, loading } from "../../core/states.js";
import { openCapture } from "./capture.js";
import { detailsOf } from "./details.js";
import { takeDrops } from "./drop.js";
import { nothingYet } from "./nothing.js";
import { SessionList } from "./list.js";
import { Pages } from "./pages.js";
import { isSortedLater, questionOf, rootOf } from "./question.js";
import { openUpload } from "./upload.js";

/** @typedef {import("../../core/server.js").ServerDocument} ServerDocument */
/** @typedef {import("./list.js").Row} Row */

/** The service's own order. */
const NEWEST = "";
/** Somebody types on. */
const PAUSE_MS = 150;
/** So many are compared. */
const MOST_COMPARED = 10;
/** Of the table, without and with details below it. */
const HEIGHTS = { alone: "max(16rem, calc(100vh - 9.5rem))", shared: "max(14rem, 50vh)" };

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const view = new SessionsView(context);
  void view.start();
  return view;
}

class SessionsView {
  /** @type {SessionList | null} */
  #list = null;
  /** @type {ServerDocument | null} */
  #server = null;
  #root = "";
  /** A chosen session that is on no page that came. @type {Row | null} */
  #apart = null;
  #typing = 0;
  #isDrawn = false;
  /** What the details show. @type {unknown[]} */
  #detailed = [];
  /** @type {Record<string, string>} */
  #params;

  /** @type {[string, string][]} */
  help = [
    ["/", "search"],
    ["Enter, twice", "what a session is; open it"],
    ["Space", "pick a session to compare it with others"],
  ];

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    this.#params = context.params;
    this.search = h("input", { type: "search", id: "search", placeholder: "Search name or host",
      "aria-label": "Search name or host", value: context.params["q"] ?? "",
      oninput: () => {
        this.#change({ q: this.search.value.trim() });
        clearTimeout(this.#typing);
        this.#typing = setTimeout(() => void this.#load(), PAUSE_MS);
      } });
    this.pages = new Pages(context.signal, () => this.#draw(), (error) => this.#fail(error));
    context.signal.addEventListener("abort", () => clearTimeout(this.#typing));
    this.count = h("span", { class: "quiet", role: "status" });
    this.roots = h("span", {});
    this.compare = h("a", { class: "button", href: "#/compare" });
    this.capture = h("button", { type: "button", onclick: () => this.#openCapture() }, "Capture …");
    this.upload = h("button", { type: "button", onclick: () => this.#openUpload([]) }, "Upload …");
    this.bar = h("div", { class: "row-of bar" }, h("h1", { class: "unseen" }, "Sessions"),
      this.search, this.roots, this.count, h("span", { class: "grow" }), this.compare,
      this.capture, this.upload,
      h("button", { type: "button", title: "Look for new sessions",
        onclick: () => void this.#load() }, "Refresh"),
      copyButton("Copy link", () => location.hash),
      exportMenu({ name: "sessions", json: () => this.#everySession(), rows: async () => listedRows(
        await this.#everySession()), command: () => commandOf(context, "sessions", { host: null }) }));
    this.content = h("div", { class: "stack" });
    this.details = h("div", {});
  }

  async start() {
    const { main, signal } = this.context;
    main.append(this.bar, this.content, this.details);
    this.#drawBar();
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || isTyping(event)) return;
      event.preventDefault();
      this.search.focus();
    }, { signal });
    addEventListener("visibilitychange", () => {
      if (!document.hidden && this.#server) void this.#load();
    }, { signal });
    await this.#open();
  }

  /** Learn what the server was started with, then which sessions there are. */
  async #open() {
    const { main, signal } = this.context;
    fill(this.content, loading("Looking for sessions"));
    try {
      this.#server = await serverDocument();
    } catch (error) {
      if (!signal.aborted) fill(this.content, failed(error, () => void this.#open()));
      return;
    }
    if (signal.aborted) return;
    this.#root = rootOf(this.context.root, this.#server);
    this.#drawRoots();
    this.#drawBar();
    takeDrops(main, signal, () => !this.#server?.read_only, (files) => this.#openUpload(files));
    await this.#load();
  }

  /** @param {Record<string, string>} params */
  update(params) {
    const isSearched = (params["q"] ?? "") !== this.search.value.trim();
    if (isSearched) this.search.value = params["q"] ?? "";
    const isSorted = (params["sort"] ?? NEWEST) !== (this.#params["sort"] ?? NEWEST);
    this.#params = params;
    if (isSorted) this.#list = null;
    if (isSorted || isSearched) void this.#load();
    else this.#draw();
    this.#drawBar();
  }

  destroy() {}

  /** The first rows of what is searched for, in the order that is wanted. */
  async #load() {
    await this.pages.ask(this.#question(), isSortedLater(this.#params["sort"] ?? NEWEST));
  }

  /** All that match, also those that no page has fetched yet, as the service lists them. */
  async #everySession() {
    const { sessions } = await sessionPage({ ...this.#question(), tools: false },
      this.context.signal);
    return sessions;
  }

  #question() {
    return questionOf(this.#root, { ...this.#params, q: this.search.value });
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#list = null;
    this.#isDrawn = false;
    fill(this.content, failed(error, () => void this.#load()));
  }

  #draw() {
    this.#drawBar();
    const { all, matching, sessions } = this.pages;
    if (!this.#server || all < 0) return;
    if (!all) {
      this.#list = null;
      this.#detailed = [];
      fill(this.content, nothingYet(this.#server, this.#root, {
        capture: () => this.#openCapture(), upload: () => this.#openUpload([]),
      }));
      fill(this.details);
      return;
    }
    const isNew = !this.#list;
    if (!this.#list) {
      this.#list = this.#newList();
      fill(this.content, this.#list.element);
    }
    this.#list.show(sessions);
    const some = matching === all ? counted(all, "session")
      : `${matching.toLocaleString("en-US")} of ${counted(all, "session")}`;
    this.count.textContent = sessions.length < matching
      ? `${some}, sorted are the newest ${counted(sessions.length, "one", "")}` : some;
    this.#drawDetails();
    // After the details, which leave the list less room.
    if (isNew) this.#list.reveal(this.#params["chosen"] ?? "");
    if (!this.#isDrawn) void this.#findChosen();
    this.#isDrawn = true;
  }

  /** What the address says is chosen may be on no page that is in view. */
  async #findChosen() {
    const chosen = this.#params["chosen"] ?? "";
    if (!chosen || this.#list?.row(chosen)) return;
    try {
      const { data } = await json(sessionPath(chosen),
        { query: { root: this.#root }, signal: this.context.signal });
      if (this.#params["chosen"] !== chosen || !this.#list) return;
      this.#apart = this.#list.rowOf(data);
      this.#list.summaries.want(data, true);
      this.#drawDetails();
    } catch {
      // One that is gone: there is nothing to show of it.
    }
  }

  #newList() {
    return new SessionList({
      root: this.#root, signal: this.context.signal, sort: this.#params["sort"] ?? NEWEST,
      onSort: (sort) => {
        this.#change({ sort: sort === NEWEST ? null : sort });
        void this.#load();
      },
      onSeen: (first, last) => this.pages.see(first, last),
      onChoose: (row) => this.#choose(row),
      isChosen: (row) => row.name === this.#params["chosen"],
      onPick: (name, isPicked) => this.#pick(name, isPicked),
      isPicked: (name) => comparedOf(this.#params).includes(name),
      link: (name, view) => this.#link(name, view),
      onKnown: (row) => {
        if (row.name === this.#params["chosen"]) this.#drawDetails();
      },
    });
  }

  /**
   * The first time a row is chosen it is shown below, the second time it is opened.
   * @param {Row} row
   */
  #choose(row) {
    if (this.#params["chosen"] === row.name) {
      location.hash = this.#link(row.name, "summary");
      return;
    }
    this.#change({ chosen: row.name });
    this.#drawDetails();
    this.#list?.reveal(row.name);
    this.details.scrollIntoView({ block: "nearest" });
    announce(`${row.name}; its details are below the table`);
  }

  #drawDetails() {
    const chosen = this.#params["chosen"] ?? "";
    const row = this.#list?.row(chosen) ?? (this.#apart?.name === chosen ? this.#apart : undefined);
    if (!this.#list) return;
    this.#list.element.style.maxHeight = row ? HEIGHTS.shared : HEIGHTS.alone;
    const state = row && this.#list.stateOf(row);
    const current = [row, state?.kind, state?.glance, state?.reason, String(row?.session.tools)];
    // Not anew for the same: somebody may be reading it, or have the focus there.
    if (current.every((one, place) => one === this.#detailed[place])) return;
    this.#detailed = current;
    if (!row || !state) {
      fill(this.details);
      return;
    }
    fill(this.details, detailsOf(row, state,
      (name, view, params) => this.#link(name, view, params), () => {
        this.#change({ chosen: null });
        this.#drawDetails();
        this.#list?.table.refresh();
        this.#list?.element.focus();
      }));
  }

  /**
   * Of more than ten the oldest pick gives way.
   * @param {string} name
   * @param {boolean} isPicked
   */
  #pick(name, isPicked) {
    const before = comparedOf(this.#params).filter((one) => one !== name);
    const picked = isPicked ? [...before.slice(1 - MOST_COMPARED), name] : before;
    this.#change(comparedParams(picked));
    this.#drawBar();
    if (isPicked && before.length >= MOST_COMPARED) this.#list?.table.refresh();
    announce(picked.length > 1 ? `${picked.length} sessions picked: compare them`
      : counted(picked.length, "session picked", "sessions picked"));
  }

  #drawBar() {
    const picked = comparedOf(this.#params), isReady = picked.length > 1;
    this.compare.hidden = !picked.length;
    this.compare.textContent = !isReady ? "Pick one more to compare"
      : picked.length === 2 ? "Compare the two" : `Compare the ${picked.length}`;
    this.compare.classList.toggle("primary", isReady);
    if (isReady) {
      this.compare.href = formatAddress({ view: "compare", session: "",
        params: { root: this.#root, ...textsOf(comparedParams(picked)) } });
    } else this.compare.removeAttribute("href");
    const isReadOnly = this.#server?.read_only ?? false;
    for (const button of [this.capture, this.upload]) {
      button.disabled = isReadOnly;
      button.title = !isReadOnly ? "" : this.#server?.source
        ? "peakline view only shows profiles; a server of peakline serve takes captures and uploads"
        : "This server is read-only (--read-only)";
    }
  }

  #drawRoots() {
    const roots = this.#server?.roots ?? [];
    if (roots.length < 2) return;
    const choice = h("select", { id: "root", "aria-label": "Log directory" },
      ...roots.map((root) => h("option", { value: root, selected: root === this.#root }, root)));
    choice.addEventListener("change", () => {
      location.hash = formatAddress({ view: "sessions", session: "", params: { root: choice.value } });
    });
    fill(this.roots, choice);
  }

  #openCapture() {
    if (!this.#server || this.#server.read_only) return;
    openCapture(this.#server, this.#root, {
      link: (name, view) => this.#link(name, view),
      onStored: () => void this.#load(), signal: this.context.signal,
    });
  }

  /** @param {File[]} files */
  #openUpload(files) {
    if (!this.#server || this.#server.read_only) return;
    openUpload(this.#server, this.#root, files, {
      link: (name, view) => this.#link(name, view),
      names: this.pages.sessions.flatMap(({ session_id }) => session_id),
      onStored: () => void this.#load(), signal: this.context.signal,
    });
  }

  /**
   * @param {string} name
   * @param {string} view
   * @param {Record<string, string | number>} [params]
   */
  #link(name, view, params = {}) {
    return this.context.linkTo(name, view, { root: this.#root, ...params });
  }

  /** @param {Record<string, string | null>} changes */
  #change(changes) {
    for (const [name, value] of Object.entries(changes)) {
      const { [name]: _, ...others } = this.#params;
      this.#params = value ? { ...others, [name]: value } : others;
    }
    this.context.change(changes);
  }
}

/**
 * @param {import("../../core/api.js").ListedSession[]} sessions
 * @returns {import("../../core/exporting.js").Rows}
 */
function listedRows(sessions) {
  return { columns: ["session_id", "modified", "bytes", "hosts"], rows: sessions.map((one) =>
    [one.session_id, one.modified ?? null, one.bytes ?? null, one.hosts.join(" ")]) };
}
