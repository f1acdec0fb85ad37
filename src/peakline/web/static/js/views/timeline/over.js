/** What lies over all bands and lanes: the pointer's time, a marked range, a moment. */

import { h } from "../../core/dom.js";
import { time } from "../../core/format.js";

const OUT_PX = 2;

export class Over {
  constructor() {
    this.cursor = h("div", { class: "tl-cursor", hidden: true });
    this.length = h("span", {});
    this.shade = h("div", { class: "tl-range", hidden: true }, this.length);
    this.pin = h("div", { class: "tl-pin", hidden: true });
    this.element = h("div", { class: "tl-over", "aria-hidden": "true" },
      this.shade, this.pin, this.cursor);
  }

  /**
   * Show where the pointer is.
   * @param {number | null} x in pixels
   */
  point(x) {
    this.cursor.hidden = x === null;
    if (x !== null) this.cursor.style.transform = `translateX(${Math.round(x)}px)`;
  }

  /**
   * @param {import("../../core/viewport.js").Viewport} viewport
   * @param {number} width
   * @param {{from: number | null, to: number | null}} range
   * @param {number | null} moment
   */
  draw(viewport, width, { from, to }, moment) {
    const hasRange = from !== null && to !== null && to >= viewport.from && from <= viewport.to;
    this.shade.hidden = !hasRange;
    if (hasRange) {
      const left = Math.max(-OUT_PX, viewport.x(from, width));
      const right = Math.min(width + OUT_PX, viewport.x(to, width));
      this.shade.style.transform = `translateX(${left}px)`;
      this.shade.style.width = `${Math.max(1, right - left)}px`;
      this.length.textContent = time(to - from, 5);
    }
    this.pin.hidden = moment === null || moment < viewport.from || moment > viewport.to;
    if (moment !== null) this.pin.style.transform = `translateX(${viewport.x(moment, width)}px)`;
  }
}
