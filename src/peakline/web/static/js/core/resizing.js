/** Columns of a table that the reader makes wider or narrower, with the pointer or with keys. */

import { h } from "./dom.js";

const NARROWEST_PX = 48;
const WIDEST_PX = 1600;
const KEY_PX = 16;
const KEY = "peakline.columns";

/**
 * The widths of the columns of one table, as CSS has them; those that the reader chose are known
 * again in this tab, by the table's label.
 */
export class Widths {
  /**
   * @param {string} label of the table
   * @param {{key: string, title: string}[]} columns
   * @param {string[]} widths of CSS, one for each
   */
  constructor(label, columns, widths) {
    this.place = `${KEY}.${label}`;
    this.columns = columns;
    this.widths = widths;
    /** @type {Record<string, number>} */
    this.chosen = chosenOf(sessionStorage.getItem(this.place));
  }

  /** The columns of the grid. */
  get css() {
    return this.columns.map(({ key }, place) => {
      const chosen = this.chosen[key];
      return chosen ? `${chosen}px` : this.widths[place];
    }).join(" ");
  }

  /**
   * What is dragged at the right edge of a head; arrow keys do the same.
   * @param {{key: string, title: string}} column
   * @param {() => void} changed
   */
  handle({ key, title }, changed) {
    const element = h("span", { class: "resize", role: "separator", tabindex: 0,
      "aria-orientation": "vertical", "aria-label": `Width of ${title || key}`,
      "aria-valuemin": NARROWEST_PX, "aria-valuemax": WIDEST_PX, "aria-valuenow": NARROWEST_PX });
    const width = () => element.parentElement?.getBoundingClientRect().width ?? NARROWEST_PX;
    const set = (/** @type {number | null} */ to) => {
      if (to === null) delete this.chosen[key];
      else this.chosen[key] = Math.round(Math.min(Math.max(to, NARROWEST_PX), WIDEST_PX));
      sessionStorage.setItem(this.place, JSON.stringify(this.chosen));
      changed();
      element.setAttribute("aria-valuenow", String(Math.round(width())));
    };
    element.addEventListener("pointerdown", (event) => {
      const from = event.clientX, wide = width();
      element.setPointerCapture(event.pointerId);
      const move = (/** @type {PointerEvent} */ next) => set(wide + next.clientX - from);
      element.addEventListener("pointermove", move);
      element.addEventListener("lostpointercapture", () =>
        element.removeEventListener("pointermove", move), { once: true });
      event.preventDefault();
    });
    element.addEventListener("dblclick", () => set(null));
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -KEY_PX, ArrowRight: KEY_PX }[event.key];
      if (step) set(width() + step);
      else if (event.key === "Delete" || event.key === "Backspace") set(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    element.addEventListener("focus", () =>
      element.setAttribute("aria-valuenow", String(Math.round(width()))));
    return element;
  }
}

/**
 * @param {string | null} text
 * @returns {Record<string, number>}
 */
function chosenOf(text) {
  return text ? JSON.parse(text) : {};
}
