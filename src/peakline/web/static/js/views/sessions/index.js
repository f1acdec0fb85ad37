/** The sessions of a log directory: what there is, what stands out, and how to get more. */

import { isAbort, json } from "../../core/api.js";
import { formatAddress } from "../../core/address.js";
import { copyButton } from "../../core/copy.js";
import { announce, fill, h } from "../../core/dom.js";
import { counted } from "../../core/format.js";
import { isTyping } from "../../core/gestures.js";
import { serverDocument } from "../../core/server.js";
import { failed, loading, notices } from "../../core/states.js";
import { openCapture } from "./capture.js";
import { detailsOf } from "./details.js";
import { takeDrops } from "./drop.js";
import { nothingYet } from "./nothing.js";
import { SessionList } from "./list.js";
import { openUpload } from "./upload.js";

/** @typedef {import("../../shell/router.js").SessionDocument} SessionDocument */
/** @typedef {import("../../core/server.js").ServerDocument} ServerDocument */
/** @typedef {import("./list.js").Row} Row */

const NEWEST = "-modified";
/** A list that is not complete yet is asked for again so many times, this long after. */
const AGAIN = 30;
const AGAIN_MS = 1500;
/** Of the table, without and with details below it. */
const HEIGHTS = { alone: "max(16rem, calc(100vh - 9.5rem))", shared: "max(14rem, 50vh)" };

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const view = new SessionsView(context);
  void view.start();
  return view;
}

class SessionsView {
  /** @type {SessionDocument[]} */
  #sessions = [];
  /** @type {SessionList | null} */
  #list = null;
  /** @type {ServerDocument | null} */
  #server = null;
  /** @type {Map<string, string>} */
  #reasons = new Map();
  #root = "";
  #again = 0;
  /** Ends the question for the list that is being answered. */
  #loads = new AbortController();
  /** What the details show. @type {unknown[]} */
  #detailed = [];
  /** @type {Record<string, string>} */
  #params;

  /** @type {[string, string][]} */
  help = [
    ["/", "search"],
    ["Enter, twice", "what a session is; open it"],
    ["Space", "pick a session to compare it with another"],
  ];

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    this.#params = context.params;
    this.search = h("input", { type: "search", id: "search", placeholder: "Search name, host or tool",
      "aria-label": "Search name, host or tool", value: context.params["q"] ?? "",
      oninput: () => {
        this.#change({ q: this.search.value.trim() });
        this.#draw();
      } });
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
      copyButton("Copy link", () => location.hash));
    this.told = h("div", {});
    this.content = h("div", { class: "stack" });
    this.details = h("div", {});
  }

  async start() {
    const { main, signal } = this.context;
    main.append(this.bar, this.told, this.content, this.details);
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
    this.#root = this.context.root || (this.#server.roots.length > 1 ? this.#server.roots[0] ?? "" : "");
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
    this.#draw();
    this.#drawBar();
  }

  destroy() {}

  async #load() {
    // An older answer must not come after a newer one.
    this.#loads.abort();
    this.#loads = new AbortController();
    const signal = AbortSignal.any([this.#loads.signal, this.context.signal]);
    try {
      const { data, notes, warnings } = await json("sessions", { query: { root: this.#root }, signal });
      if (signal.aborted) return;
      this.#sessions = data;
      this.#reasons = reasonsOf(notes);
      fill(this.told, notices({ notes, warnings }, "these sessions"));
      this.#draw();
      // The tools of a large log directory come bit by bit.
      if (notes.some((note) => note.includes("not all known yet")) && this.#again++ < AGAIN) {
        const later = setTimeout(() => void this.#load(), AGAIN_MS);
        signal.addEventListener("abort", () => clearTimeout(later), { once: true });
      }
    } catch (error) {
      if (isAbort(error)) return;
      this.#list = null;
      fill(this.told);
      fill(this.content, failed(error, () => void this.#load()));
    }
  }

  #draw() {
    this.#drawBar();
    if (!this.#server) return;
    if (!this.#sessions.length) {
      this.#list = null;
      this.#detailed = [];
      fill(this.content, nothingYet(this.#server, this.#root, {
        capture: () => this.#openCapture(), upload: () => this.#openUpload([]),
      }));
      fill(this.details);
      return;
    }
    const shown = this.#sessions.filter((session) => this.#matches(session));
    const isNew = !this.#list;
    if (!this.#list) {
      this.#list = this.#newList();
      fill(this.content, this.#list.element);
    }
    this.#list.show(shown, this.#reasons);
    const all = this.#sessions.length;
    this.count.textContent = shown.length === all ? counted(all, "session")
      : `${shown.length} of ${counted(all, "session")}`;
    this.#drawDetails();
    // After the details, which leave the list less room.
    if (isNew) this.#list.reveal(this.#params["chosen"] ?? "");
  }

  #newList() {
    const picked = () => [this.#params["first"], this.#params["second"]];
    return new SessionList({
      root: this.#root, signal: this.context.signal, sort: this.#params["sort"] ?? NEWEST,
      onSort: (sort) => this.#change({ sort: sort === NEWEST ? null : sort }),
      onChoose: (row) => this.#choose(row),
      isChosen: (row) => row.name === this.#params["chosen"],
      onPick: (name, isPicked) => this.#pick(name, isPicked),
      isPicked: (name) => picked().includes(name),
      link: (name, view) => this.#link(name, view),
      onKnown: (row) => {
        if (row.name === this.#params["chosen"]) this.#drawDetails();
      },
    });
  }

  /** @param {SessionDocument} session */
  #matches({ session_id, hosts, tools }) {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = [session_id, ...hosts, ...tools].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
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
    const row = this.#list?.row(this.#params["chosen"] ?? "");
    if (!this.#list) return;
    this.#list.element.style.maxHeight = row ? HEIGHTS.shared : HEIGHTS.alone;
    const state = row && this.#list.stateOf(row);
    const told = [row, state?.kind, state?.glance, state?.reason, String(row?.session.tools)];
    // Not anew for the same: somebody may be reading it, or have the focus there.
    if (told.every((one, place) => one === this.#detailed[place])) return;
    this.#detailed = told;
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
   * Of more than two the older pick gives way.
   * @param {string} name
   * @param {boolean} isPicked
   */
  #pick(name, isPicked) {
    const before = [this.#params["first"], this.#params["second"]].filter((one) => one && one !== name);
    const picked = isPicked ? [...before.slice(-1), name] : before;
    this.#change({ first: picked[0] ?? null, second: picked[1] ?? null });
    this.#drawBar();
    if (isPicked && before.length === 2) this.#list?.table.refresh();
    announce(picked.length === 2 ? "two sessions picked: compare them" : counted(picked.length,
      "session picked", "sessions picked"));
  }

  #drawBar() {
    const { first = "", second = "" } = this.#params;
    const isReady = Boolean(first && second);
    this.compare.hidden = !first && !second;
    this.compare.textContent = isReady ? "Compare the two" : "Pick one more to compare";
    this.compare.classList.toggle("primary", isReady);
    if (isReady) {
      this.compare.href = formatAddress({ view: "compare", session: "",
        params: { root: this.#root, first, second } });
    } else this.compare.removeAttribute("href");
    const isReadOnly = this.#server?.read_only ?? false;
    for (const button of [this.capture, this.upload]) {
      button.disabled = isReadOnly;
      button.title = isReadOnly ? "This server is read-only (--read-only)" : "";
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
      names: this.#sessions.map(({ session_id }) => session_id),
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
 * Why sessions cannot be read, by name: the list tells it a line each.
 * @param {string[]} notes
 * @returns {Map<string, string>}
 */
function reasonsOf(notes) {
  /** @type {Map<string, string>} */
  const reasons = new Map();
  for (const note of notes) {
    const found = /^session (.*?): (.*)$/s.exec(note);
    if (found?.[1] && found[2]) reasons.set(found[1], found[2]);
  }
  return reasons;
}
