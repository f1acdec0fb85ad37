/** Finding nodes by name, op, device or the framework's name; the matches are listed. */

import { isAbort } from "../../core/api.js";
import { announce, fill, h } from "../../core/dom.js";
import { count, counted } from "../../core/format.js";

const TYPING_MS = 200;
const MOST = 100;

/**
 * @typedef {object} SearchOptions
 * @property {(text: string, signal: AbortSignal) => Promise<any>} find the service's answer
 * @property {(item: number) => void} choose
 * @property {(text: string) => void} changed
 */

export class Search {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;
  /** @type {AbortController | null} */
  #finding = null;

  /** @param {SearchOptions} options */
  constructor(options) {
    this.options = options;
    this.field = h("input", { type: "search", placeholder: "Search nodes ( / )",
      "aria-label": "Search nodes by name, op or device", spellcheck: "false", autocomplete: "off",
      maxlength: 1000, "aria-controls": "gv-matches" });
    this.status = h("span", { class: "quiet", role: "status" });
    this.list = h("ul", { id: "gv-matches", class: "gv-matches", "aria-label": "Matches" });
    this.list.hidden = true;
    this.element = h("div", { class: "gv-search", role: "search" }, this.field, this.status, this.list);
    this.field.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => {
        options.changed(this.field.value);
        void this.find();
      }, TYPING_MS);
    });
    this.field.addEventListener("focus", () => void (this.list.hidden = !this.list.children.length));
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focusout", (event) => {
      const next = event.relatedTarget;
      if (!(next instanceof Node) || !this.element.contains(next)) this.list.hidden = true;
    });
  }

  /** @param {string} text */
  set(text) {
    if (text === this.field.value) return;
    this.field.value = text;
    void this.find(false);
  }

  /** @param {boolean} [open] whether the matches are listed at once */
  async find(open = true) {
    this.#finding?.abort();
    const text = this.field.value.trim();
    if (!text) {
      fill(this.list);
      this.list.hidden = true;
      this.status.textContent = "";
      return;
    }
    const finding = this.#finding = new AbortController();
    try {
      const { rows, rows_total: total } = await this.options.find(text, finding.signal);
      if (finding.signal.aborted) return;
      this.status.textContent = total > rows.length
        ? `${count(rows.length)} of ${count(total)} nodes` : counted(total, "node");
      announce(`${counted(total, "match", "matches")}`);
      fill(this.list, ...rows.map((/** @type {any} */ row) => h("li", {},
        h("button", { type: "button", class: "plain", onclick: () => this.#choose(row.item) },
          h("span", { class: "gv-found" }, row.name), h("span", { class: "quiet" }, row.op)))));
      this.list.hidden = !open || !rows.length;
    } catch (error) {
      if (!isAbort(error)) this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  destroy() {
    clearTimeout(this.#typing);
    this.#finding?.abort();
  }

  /** @param {number} item */
  #choose(item) {
    this.list.hidden = true;
    this.options.choose(item);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const place = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (event.key === "Escape") {
      if (this.list.hidden) this.field.blur();
      this.list.hidden = true;
      if (place >= 0) this.field.focus();
    } else if (event.key === "ArrowDown" && buttons.length) {
      this.list.hidden = false;
      buttons[Math.min(place + 1, buttons.length - 1)]?.focus();
    } else if (event.key === "ArrowUp" && place >= 0) {
      (place ? buttons[place - 1] : this.field)?.focus();
    } else if (event.key === "Enter" && document.activeElement === this.field && buttons.length) {
      buttons[0]?.click();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

export { MOST as MOST_MATCHES };
