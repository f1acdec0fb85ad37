/** What lies over all bands and lanes: the pointer's time, a marked range, a moment. */

import { fill, h } from "../../core/dom.js";

const OUT_PX = 2;

export class Over {
  constructor() {
    this.cursor = h("div", { class: "tl-cursor", hidden: true });
    this.shade = h("div", { class: "tl-range", hidden: true });
    this.flags = h("div", {});
    this.pin = h("div", { class: "tl-pin", hidden: true });
    this.element = h("div", { class: "tl-over", "aria-hidden": "true" },
      this.shade, this.flags, this.pin, this.cursor);
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
   * @param {{from: number | null, to: number | null, lines: number[] | null}} range
   * @param {number | null} moment
   * @param {{at: number}[]} flags
   */
  draw(viewport, width, { from, to, lines }, moment, flags) {
    const hasRange = from !== null && to !== null && to >= viewport.from && from <= viewport.to;
    this.shade.hidden = !hasRange;
    if (hasRange) {
      const left = Math.max(-OUT_PX, viewport.x(from, width));
      const right = Math.min(width + OUT_PX, viewport.x(to, width));
      this.shade.style.transform = `translateX(${left}px)`;
      this.shade.style.width = `${Math.max(1, right - left)}px`;
      // Of some lines, the lanes show which.
      this.shade.classList.toggle("of-lines", lines !== null);
    }
    const seen = flags.map(({ at }) => viewport.x(at, width)).filter((x) => x >= 0 && x <= width);
    if (seen.length || this.flags.childElementCount) {
      fill(this.flags, seen.map((x) => h("div", { class: "tl-flag",
        style: { transform: `translateX(${Math.round(x)}px)` } })));
    }
    this.pin.hidden = moment === null || moment < viewport.from || moment > viewport.to;
    if (moment !== null) this.pin.style.transform = `translateX(${viewport.x(moment, width)}px)`;
  }
}
