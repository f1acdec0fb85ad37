/** From the address to the view that it names, and back. */

import { json, sessionPath } from "../core/api.js";
import { changed, formatAddress, parseAddress } from "../core/address.js";
import { fill } from "../core/dom.js";
import { preload } from "../core/preload.js";
import { empty, failed, loading } from "../core/states.js";
import { hideTip } from "../core/tooltip.js";
import { firstView } from "../core/views.js";
import { AnswerBar } from "./answer.js";
import { Context } from "./context.js";
import { Header } from "./header.js";
import { openHelp } from "./help.js";
import { openPalette } from "./palette.js";
import { skipLinks } from "./skip.js";
import { isTyping } from "../core/gestures.js";

/** @typedef {import("../core/address.js").Address} Address */
/**
 * What a view's module gives back: `update` gets new parameters, `destroy` ends it.
 * @typedef {{update(params: Record<string, string>): void, destroy(): void, help?: [string, string][]}} View
 */
/** @typedef {{session_id: string, hosts: string[], tools: string[], bytes?: number, modified?: string}} SessionDocument */

/** @type {Record<string, () => Promise<{mount(context: Context): View}>>} */
const VIEWS = {
  sessions: () => import("../views/sessions/index.js"),
  compare: () => import("../views/compare/index.js"),
  job: () => import("../views/job/index.js"),
  summary: () => import("../views/summary/index.js"),
  memory: () => import("../views/memory/index.js"),
  timeline: () => import("../views/timeline/index.js"),
  steps: () => import("../views/steps/index.js"),
  graph: () => import("../views/graph/index.js"),
  sql: () => import("../views/sql/index.js"),
};

export class Router {
  /** @type {View | null} */
  #view = null;
  /** @type {Context | null} of the view */
  #context = null;
  /** The address as the browser last told it. */
  #seen = "";
  /** @type {AbortController} */
  #ends = new AbortController();
  /** @type {Address} */
  #address = { view: "", session: "", params: {} };
  /** @type {{key: string, document: Promise<SessionDocument>} | null} */
  #known = null;
  #main = /** @type {HTMLElement} */ (document.getElementById("main"));
  #header = new Header(/** @type {HTMLElement} */ (document.getElementById("header")));

  #answer = new AnswerBar(/** @type {HTMLElement} */ (document.getElementById("answer")));

  start() {
    skipLinks(this.#main);
    this.#header.goTo = () => this.#goTo();
    this.#header.help = () => this.#view?.help ?? [];
    addEventListener("hashchange", () => void this.#follow());
    addEventListener("keydown", (event) => {
      if (event.key === "?" && !isTyping(event)) openHelp(this.#view?.help ?? []);
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#goTo();
      }
    });
    void this.#follow();
  }

  /**
   * Show an address, as a new entry of the browser's history.
   * @param {Address} address
   */
  go(address) {
    const hash = formatAddress(address);
    if (hash !== location.hash) location.hash = hash;
  }

  /**
   * Change parameters of what is shown.
   * @param {Record<string, string | number | boolean | null | undefined>} changes
   * @param {boolean} push whether Back shall undo it
   */
  change(changes, push) {
    // The reader went elsewhere, and the event of it is still to come.
    if (location.hash !== this.#seen) return;
    this.#address = { ...this.#address, params: changed(this.#address.params, changes) };
    const hash = formatAddress(this.#address);
    if (hash === location.hash) return;
    // The view knows already: no event comes of it.
    if (push) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    this.#seen = location.hash;
    this.#header.setAddress(this.#address);
  }

  async #follow() {
    this.#seen = location.hash;
    const address = parseAddress(location.hash);
    const before = this.#address;
    if (!address) {
      this.#leave({ view: "", session: "", params: {} });
      fill(this.#main, empty("There is no such page", "The address names none. ",
        linkTo("#/", "All sessions")));
      return;
    }
    const isSame = address.view === before.view && address.session === before.session
      && address.params["host"] === before.params["host"]
      && address.params["root"] === before.params["root"];
    if (isSame && this.#view) {
      this.#address = address;
      this.#header.setAddress(address);
      this.#context?.forget();
      this.#view.update(address.params);
      return;
    }
    await this.#open(address);
  }

  /** @param {Address} address */
  async #open(address) {
    const ends = this.#leave(address);
    fill(this.#main, loading("Opening"));
    preload(address.view);
    const module = (VIEWS[address.view] ?? VIEWS["sessions"])?.();
    try {
      const session = address.session ? this.#session(address) : null;
      session?.then((result) => void (!ends.signal.aborted && this.#header.setSession(result)),
        () => undefined);
      let shown = address;
      if (address.view === "job" && address.params["host"]) {
        const { host: _, ...params } = address.params;
        history.replaceState(null, "", formatAddress({ ...address, params }));
        await this.#follow();
        return;
      }
      if (session && !address.params["host"]) {
        const document = await session, { hosts } = document;
        // Where the reader went elsewhere meanwhile, that is followed in a moment.
        if (ends.signal.aborted || location.hash !== this.#seen) return;
        if (address.view === "summary" && firstView(document) === "job") {
          history.replaceState(null, "", formatAddress({ ...address, view: "job" }));
          await this.#follow();
          return;
        }
        if (hosts.length > 1 && address.view !== "job") {
          shown = { ...address, params: { ...address.params, host: hosts[0] ?? "" } };
          this.#address = shown;
          history.replaceState(null, "", formatAddress(shown));
          this.#seen = location.hash;
          this.#header.setAddress(shown);
        }
      }
      const { mount } = await /** @type {NonNullable<typeof module>} */ (module);
      if (ends.signal.aborted) return;
      fill(this.#main);
      this.#context = new Context(this, this.#main, shown, ends.signal, session);
      this.#view = mount(this.#context);
      if (!session) return;
      const { tools } = await session;
      if (ends.signal.aborted) return;
      // The job says first what there is to say of all ranks.
      if (shown.view === "job") this.#answer.hide();
      else this.#answer.show(shown, tools);
    } catch (error) {
      if (ends.signal.aborted) return;
      fill(this.#main, failed(error, () => void this.#open(address)));
    }
  }

  /**
   * End what is shown, before `address` is.
   * @param {Address} address
   */
  #leave(address) {
    this.#ends.abort();
    this.#view?.destroy();
    this.#view = null;
    hideTip();
    this.#ends = new AbortController();
    this.#address = address;
    this.#main.className = address.view;
    this.#header.setAddress(address);
    if (!address.session) this.#answer.hide();
    const place = [address.session, address.view].filter(Boolean).join(" · ");
    document.title = place ? `${place} – Peakline` : "Peakline";
    return this.#ends;
  }

  #goTo() {
    openPalette(this.#address, this.#header.session);
  }

  /** @param {Address} address */
  #session({ session, params }) {
    const key = `${params["root"] ?? ""}\n${session}`;
    if (this.#known?.key !== key) {
      const query = { root: params["root"] };
      const document = json(sessionPath(session), { query }).then(({ data }) => data);
      this.#known = { key, document };
      document.catch(() => void (this.#known = null));
    }
    return this.#known.document;
  }
}

/**
 * @param {string} href
 * @param {string} text
 */
function linkTo(href, text) {
  const link = document.createElement("a");
  link.href = href;
  link.textContent = text;
  return link;
}
