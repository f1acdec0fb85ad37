/** The head of the page: where one is, the session's views, its host, light or dark. */

import { formatAddress } from "../core/address.js";
import { fill, h } from "../core/dom.js";
import { copyButton } from "../core/copy.js";
import { pickSession } from "../core/session_picker.js";
import { switchTheme } from "../core/theme.js";
import { firstView, viewsOf } from "../core/views.js";
import { openHelp } from "./help.js";

const TITLES = {
  job: "Job", summary: "Summary", memory: "Memory", timeline: "Timeline", steps: "Steps and ops",
  graph: "Graph", sql: "SQL",
};
const RETAINED = ["host", "root"];
/** Parameters that mean the same in two views. */
const SHARED = { memory: ["from", "to", "at"], timeline: ["from", "to", "at"] };

/** @typedef {import("../core/address.js").Address} Address */
/** @typedef {import("./router.js").SessionDocument} SessionDocument */

export class Header {
  /** @type {Address} */
  #address = { view: "", session: "", params: {} };
  /** @type {SessionDocument | null} */
  #document = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.where = h("div", { class: "where" });
    this.views = h("nav", { "aria-label": "Views of the session" });
    this.compare = h("button", { type: "button", class: "plain compare-with",
      title: "Compare this session with another", onclick: () => this.#compare() }, "Compare with …");
    this.copy = copyButton("Copy link", () => location.hash);
    const theme = h("button", { type: "button", class: "plain", title: "Light or dark",
      "aria-label": "Light or dark", onclick: switchTheme }, "◐");
    const goTo = h("button", { type: "button", class: "plain", title: "Go to anything (Ctrl K)",
      "aria-label": "Go to", onclick: () => this.goTo() }, "⌕");
    const help = h("button", { type: "button", class: "plain", title: "Help (?)",
      "aria-label": "Help", id: "help" }, "?");
    help.addEventListener("click", () => openHelp(this.help()));
    fill(element,
      h("a", { class: "brand", href: "#/" }, h("img", { src: "assets/icon.svg", alt: "", width: 22,
        height: 22 }), "Peakline"),
      this.where, this.views, h("div", { class: "tools" }, this.compare, goTo, this.copy, theme, help));
  }

  /** Opens the palette; the router sets it. */
  goTo = () => {};

  /** The session that is shown, once its document has come. */
  get session() {
    return this.#document;
  }

  /** What `?` says besides the general; the router sets it. */
  help = () => /** @type {[string, string][]} */ ([]);

  /** @param {Address} address */
  setAddress(address) {
    if (address.session !== this.#address.session) this.#document = null;
    this.#address = address;
    this.#draw();
  }

  /** @param {SessionDocument} document */
  setSession(document) {
    this.#document = document;
    this.#draw();
  }

  #draw() {
    const { view, session } = this.#address;
    const root = this.#retained();
    fill(this.where,
      h("a", { href: formatAddress({ view: "sessions", session: "", params: root }),
        "aria-current": view === "sessions" ? "page" : null }, "Sessions"),
      view === "compare" && h("span", {}, " › Compare"),
      session && h("span", { class: "session", title: session }, " › ", session),
      session && this.#hosts());
    this.views.hidden = this.copy.hidden = this.compare.hidden = !session;
    const document = this.#document;
    const useful = document && new Set(["summary", view, ...viewsOf(document).map((one) => one.view)]);
    fill(this.views, session ? Object.entries(TITLES).filter(([name]) => !useful || useful.has(name))
      .map(([name, title]) =>
        h("a", { href: this.#link(name), "aria-current": view === name ? "page" : null }, title))
      : []);
  }

  /** @param {string} view */
  #link(view) {
    const { session, params } = this.#address;
    const both = /** @type {Record<string, string[]>} */ (SHARED);
    const shared = both[this.#address.view]?.filter((name) => both[view]?.includes(name)) ?? [];
    // The job is of all hosts; its summary is not that of one.
    const retained = view === "job" ? ["root"] : [...RETAINED, ...shared];
    const others = Object.fromEntries(Object.entries(params).filter(([name]) => retained.includes(name)));
    const [first = ""] = this.#address.view === "job" && view === "summary" ? this.#document?.hosts ?? [] : [];
    return formatAddress({ view, session, params: { ...(first ? { host: first } : {}), ...others } });
  }

  /** What is open is Before: what is compared with it is what changed. */
  #compare() {
    const { session, params: { root = "", host = "" } } = this.#address;
    pickSession(`Compare ${session} with`, { root, without: [session], choose: (name) => {
      location.hash = formatAddress({ view: "compare", session: "", params: { ...this.#retained(),
        first: session, second: name, ...(host ? { first_host: host } : {}) } });
    } });
  }

  #hosts() {
    const hosts = this.#document?.hosts ?? [];
    if (hosts.length < 2) return null;
    const { params, view } = this.#address;
    const hasJob = this.#document !== null && firstView(this.#document) === "job";
    const choice = h("select", { "aria-label": "Host" },
      hasJob && h("option", { value: "", selected: view === "job" }, "all hosts"),
      ...hosts.map((host) => h("option", { value: host, selected: host === params["host"] }, host)));
    choice.addEventListener("change", () => {
      const address = { ...this.#address, params: { ...this.#retained(), host: choice.value } };
      if (!choice.value) address.view = "job";
      else if (view === "job") address.view = "summary";
      location.hash = formatAddress(address);
    });
    return choice;
  }

  /** @returns {Record<string, string>} what every address of this server needs */
  #retained() {
    const root = this.#address.params["root"];
    return root ? { root } : {};
  }
}
