/** What can be done with a line or a plane of the lanes: a menu beside its label. */

import { fill, h } from "../../core/dom.js";

/** @typedef {{text: string, act: () => void}} Item */

export class LaneMenu {
  /** @type {HTMLElement | null} */
  #opener = null;

  constructor() {
    this.element = h("div", { class: "tl-menu", role: "menu", hidden: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focusout", (event) => {
      const next = event.relatedTarget;
      if (!(next instanceof Node) || !this.element.contains(next)) this.close(false);
    });
  }

  /**
   * @param {HTMLElement} opener
   * @param {string} label what the menu is about
   * @param {Item[]} items
   */
  open(opener, label, items) {
    this.close(false);
    this.#opener = opener;
    opener.setAttribute("aria-expanded", "true");
    this.element.setAttribute("aria-label", label);
    fill(this.element, items.map(({ text, act }) => h("button", { type: "button", role: "menuitem",
      class: "plain", tabindex: -1, onclick: () => {
        this.close(true);
        act();
      } }, text)));
    this.element.hidden = false;
    const box = opener.getBoundingClientRect();
    const top = Math.min(box.bottom, innerHeight - this.element.offsetHeight - 4);
    const left = Math.min(box.left, innerWidth - this.element.offsetWidth - 4);
    this.element.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
    this.#items()[0]?.focus();
  }

  /** @param {boolean} back give the focus back */
  close(back) {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.#opener?.setAttribute("aria-expanded", "false");
    if (back) document.getElementById(this.#opener?.id ?? "")?.focus();
    this.#opener = null;
  }

  #items() {
    return /** @type {HTMLElement[]} */ ([...this.element.children]);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const items = this.#items(), at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape") this.close(true);
    else if (to !== undefined) items[(to + items.length) % items.length]?.focus();
    else if (event.key === "Tab") this.close(true);
    else {
      // Keys of the timeline do not act on what is below the menu.
      event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
