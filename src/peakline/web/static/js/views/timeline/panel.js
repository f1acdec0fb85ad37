/** What is below the lanes: tabs, of which at most one is open, and an edge to drag. */

import { fill, h } from "../../core/dom.js";

const LEAST_PX = 120;
const SHARE = 0.36;
/** What is above takes so much, if lanes are to be seen. */
const REST_PX = 460;
const KEY_PX = 24;

/** @typedef {{key: string, title: string, content: HTMLElement, opened?: () => void}} Tab */

export class Panel {
  /** The open tab's key, or "". */
  open = "";
  /** @type {number | null} */
  #height = null;

  /**
   * @param {Tab[]} tabs
   * @param {() => void} changed opened, closed or resized
   */
  constructor(tabs, changed) {
    this.tabs = tabs;
    this.changed = changed;
    this.buttons = new Map(tabs.map(({ key, title }) => [key, h("button", {
      type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "tl-panel",
      onclick: () => this.toggle(key),
    }, title)]));
    this.edge = h("div", {
      class: "tl-edge", role: "separator", tabindex: 0, "aria-orientation": "horizontal",
      "aria-label": "Height of the part below", "aria-valuemin": LEAST_PX, "aria-controls": "tl-panel",
      hidden: true,
    });
    this.body = h("div", { class: "tl-body", id: "tl-panel", hidden: true });
    this.element = h("div", { class: "tl-panel" }, this.edge,
      h("div", { class: "tl-tabs", role: "group", "aria-label": "Below the lanes" },
        ...this.buttons.values()), this.body);
    this.edge.addEventListener("pointerdown", (event) => this.edge.setPointerCapture(event.pointerId));
    this.edge.addEventListener("pointermove", (event) => {
      if (!this.edge.hasPointerCapture(event.pointerId)) return;
      this.#resize(this.body.getBoundingClientRect().bottom - event.clientY - 34);
    });
    this.edge.addEventListener("keydown", (event) => {
      const by = { ArrowUp: KEY_PX, ArrowDown: -KEY_PX }[event.key];
      if (by === undefined) return;
      this.#resize(this.body.offsetHeight + by);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** @param {string} key */
  toggle(key) {
    this.show(this.open === key ? "" : key);
  }

  /**
   * Open a tab; "" closes.
   * @param {string} key
   */
  show(key) {
    const tab = this.tabs.find((one) => one.key === key);
    const before = this.open;
    this.open = tab ? key : "";
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-expanded", String(name === this.open));
    }
    this.body.hidden = this.edge.hidden = !tab;
    if (tab && before !== key) {
      fill(this.body, tab.content);
      this.#resize(this.#height ?? Math.min(innerHeight * SHARE, innerHeight - REST_PX), true);
      tab.opened?.();
    }
    if (before !== this.open) this.changed();
  }

  /**
   * @param {string} key
   * @param {string} title
   */
  setTitle(key, title) {
    const button = this.buttons.get(key);
    if (button) button.textContent = title;
  }

  /**
   * @param {number} height
   * @param {boolean} [isDefault]
   */
  #resize(height, isDefault = false) {
    const most = Math.max(LEAST_PX, innerHeight * 0.6);
    const fitted = Math.round(Math.min(Math.max(height, LEAST_PX), most));
    this.body.style.height = `${fitted}px`;
    this.edge.setAttribute("aria-valuenow", String(fitted));
    this.edge.setAttribute("aria-valuemax", String(Math.round(most)));
    if (isDefault) return;
    this.#height = fitted;
    this.changed();
  }
}
