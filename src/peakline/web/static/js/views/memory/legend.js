/** The allocators: their colors and peaks, which are drawn, and whose content is shown. */

import { fill, h } from "../../core/dom.js";
import { bytes, percent } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} LegendWishes
 * @property {(allocator: string) => void} choose
 * @property {(places: number[]) => void} show
 */

/**
 * @param {import("./model.js").Model} model
 * @param {LegendWishes} wishes
 */
export function makeLegend(model, wishes) {
  const element = h("div", { class: "memory-legend", role: "group", "aria-label": "Allocators" });
  return { element, redraw };

  function redraw() {
    const { allocator: chosen, shown, isMoment } = model;
    const many = model.allocators.length > 1;
    const focused = element.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-key") : null;
    fill(element, model.allocators.map((one) => {
      const facts = h("span", { class: "quiet" }, one.peak_bytes || !one.untracked_allocations
        ? `peak ${bytes(one.peak_bytes)}${limit(one)}`
        : `peak not known: ${WORDING.untracked}`);
      const swatch = h("span", { class: "swatch", "aria-hidden": "true",
        style: { backgroundColor: `var(--series-${(one.place % 8) + 1})` } });
      if (!many) return h("span", { class: "chip" }, swatch, h("strong", {}, one.label), facts);
      const isShown = shown.includes(one);
      return h("span", { class: "chip" },
        !isMoment && h("input", { type: "checkbox", checked: isShown, "data-key": `draw-${one.place}`,
          "aria-label": `Draw ${one.label}`, onchange: () => toggle(one.place, !isShown) }),
        h("button", { type: "button", "aria-pressed": String(one === chosen),
          "data-key": `name-${one.place}`, title: `${one.label}: show what is live in it`,
          onclick: () => wishes.choose(one.name) }, swatch, h("span", { class: "name" }, one.label)),
        facts);
    }));
    if (focused) {
      for (const result of element.querySelectorAll("[data-key]")) {
        if (result instanceof HTMLElement && result.dataset["key"] === focused) result.focus();
      }
    }
  }

  /**
   * @param {number} place
   * @param {boolean} isWanted
   */
  function toggle(place, isWanted) {
    const places = model.shown.map((one) => one.place).filter((one) => one !== place);
    if (isWanted) places.push(place);
    // An empty chart says nothing.
    if (places.length) wishes.show(places.sort((one, other) => one - other));
    else redraw();
  }
}

/** @param {import("./model.js").Allocator} allocator */
function limit({ capacity_bytes: capacity, peak_bytes: peak }) {
  if (!capacity) return "";
  const share = peak / capacity < 0.0005 ? "less than 0.1%" : percent(peak / capacity);
  return `, ${share} of ${bytes(capacity)}`;
}
