/**
 * The answer bar: what is said first of a session, above each of its views.
 *
 * On the summary it is open; elsewhere it is one line, which opens, and it comes after what the view
 * itself needs.
 */

import { json, sessionPath, whenQuiet } from "../core/api.js";
import { formatAddress } from "../core/address.js";
import { fill, h } from "../core/dom.js";
import { sentencePart } from "../core/sentence.js";
import { memorySpark, stepStrip } from "../core/small.js";

const OPEN = "peakline.answer";
const SUBJECTS = /** @type {const} */ (["memory", "time", "savings"]);

/** @typedef {typeof SUBJECTS[number]} Subject */
/** @typedef {import("../core/address.js").Address} Address */
/** @typedef {{sentences: import("../core/sentence.js").Sentence[], picture: any}} Headline */

export class AnswerBar {
  #key = "";
  #ends = new AbortController();
  /** @type {Partial<Record<Subject, Headline>>} */
  #found = {};
  /** @type {Set<Subject>} */
  #begun = new Set();
  /** @type {Set<Subject>} */
  #coming = new Set();
  /** @type {{element: HTMLElement, destroy: () => void}[]} */
  #pictures = [];
  /** @type {Address} */
  #address = { view: "", session: "", params: {} };

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.lines = h("div", { class: "lines" });
    this.pictures = h("div", { class: "pictures" });
    this.toggle = h("button", { type: "button", class: "plain", "aria-controls": "answer-lines",
      onclick: () => {
        sessionStorage.setItem(OPEN, String(!this.#isOpen()));
        void this.#load();
      } });
    this.lines.id = "answer-lines";
    fill(element, this.toggle, this.lines, this.pictures);
  }

  /**
   * @param {Address} address whose session the bar is about
   * @param {readonly string[]} tools of the session
   */
  show(address, tools) {
    this.#address = address;
    const { session, params } = address;
    const key = [params["root"], session, params["host"]].join("\n");
    if (!session || !tools.includes("headline")) {
      this.hide();
      return;
    }
    if (key !== this.#key) {
      this.hide();
      this.#key = key;
      this.#found = {};
      this.#begun = new Set();
      this.#coming = new Set();
      this.#ends = new AbortController();
    }
    void this.#load();
  }

  hide() {
    this.#ends.abort();
    this.#key = "";
    this.element.hidden = true;
    this.#drop();
  }

  /** What is not known yet; savings, which take all that is known of memory, only where they show. */
  async #load() {
    const { view } = this.#address, { signal } = this.#ends;
    const wanted = SUBJECTS.filter((about) => !this.#begun.has(about)
      && (about !== "savings" || this.#isOpen()));
    for (const about of wanted) {
      this.#begun.add(about);
      this.#coming.add(about);
    }
    this.#draw();
    // What the reader came for goes first.
    if (view !== "summary" && wanted.length) await whenQuiet(signal);
    const quick = wanted.filter((about) => about !== "savings");
    await Promise.all(quick.map((about) => this.#ask(about, signal)));
    if (wanted.includes("savings")) await this.#ask("savings", signal);
  }

  /**
   * @param {Subject} about
   * @param {AbortSignal} signal
   */
  async #ask(about, signal) {
    if (signal.aborted) return;
    const { session, params } = this.#address;
    try {
      const { data } = await json(sessionPath(session, "tools", "headline"),
        { query: { root: params["root"], host: params["host"], about }, signal });
      this.#found[about] = data;
    } catch {
      // The view itself says what is wrong with the session.
    }
    if (signal.aborted) return;
    this.#coming.delete(about);
    this.#draw();
  }

  #isOpen() {
    const chosen = sessionStorage.getItem(OPEN);
    return this.#address.view === "summary" || chosen === "true";
  }

  #draw() {
    const { session, view, params } = this.#address;
    const isOpen = this.#isOpen();
    const sentences = SUBJECTS.flatMap((about) => this.#found[about]?.sentences ?? []);
    sentences.sort((one, other) => rank(one) - rank(other));
    const link = (/** @type {string} */ to, /** @type {Record<string, string | number>} */ more = {}) =>
      formatAddress({ view: to, session, params: texts({ ...shared(params), ...more }) });
    this.element.classList.toggle("open", isOpen);
    this.toggle.hidden = view === "summary" || !sentences.length;
    this.toggle.textContent = isOpen ? "▴" : "▾";
    this.toggle.setAttribute("aria-expanded", String(isOpen));
    this.toggle.setAttribute("aria-label", isOpen ? "Less of the answer" : "All of the answer");
    fill(this.lines, ...sentences.map((one) => sentencePart(one, link)),
      this.#coming.size > 0 && h("p", { class: "quiet coming" },
        sentences.length ? "Reading more …" : "Reading the profile …"));
    this.element.hidden = !sentences.length && !this.#coming.size;
    this.#drop();
    if (isOpen) this.#drawPictures(link);
  }

  /** @param {(view: string, params: Record<string, string | number>) => string} link */
  #drawPictures(link) {
    const curve = this.#found.memory?.picture, strip = this.#found.time?.picture;
    if (curve) {
      this.#pictures.push(memorySpark(curve, (at) =>
        void (location.hash = link("memory", { allocator: curve.allocator, at }))));
    }
    if (strip && strip.wall_ps.length > 1) {
      this.#pictures.push(stepStrip(strip, (name, device) =>
        void (location.hash = link("steps", { name, ...(device ? { device } : {}) }))));
    }
    fill(this.pictures, ...this.#pictures.map(({ element }) => element));
  }

  #drop() {
    for (const one of this.#pictures) one.destroy();
    this.#pictures = [];
    fill(this.pictures);
  }
}

/** Failures first, then what stands out. @param {import("../core/sentence.js").Sentence} sentence */
function rank({ kind, is_notable: isNotable }) {
  return kind === "failure" ? 0 : kind === "peak" || kind === "steps" ? 1 : isNotable ? 2 : 3;
}

/** @param {Record<string, string>} params */
function shared({ root, host }) {
  return { ...(root ? { root } : {}), ...(host ? { host } : {}) };
}

/**
 * @param {Record<string, string | number>} params
 * @returns {Record<string, string>}
 */
function texts(params) {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
}
