/** Allocators of a file that tells of one moment: a bar each, in place of the chart over time. */

import { fill, h } from "../../core/dom.js";
import { bytes, percent } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/**
 * @param {import("./model.js").Model} model
 * @param {(allocator: string) => void} choose
 */
export function makeBars(model, choose) {
  const element = h("div", { class: "memory-bars stack" });
  return { element, redraw };

  function redraw() {
    const top = Math.max(1, ...model.allocators.map(({ peak_bytes: peak, capacity_bytes: capacity }) =>
      Math.max(peak, capacity ?? 0)));
    fill(element,
      h("p", { class: "quiet" }, WORDING.memory.one_moment),
      h("ul", {}, ...model.ranked.map((one) => {
        const { label, name, peak_bytes: used, capacity_bytes: capacity, place } = one;
        const share = capacity ? ` of ${bytes(capacity)} (${percent(used / capacity)})` : "";
        const bar = h("div", { class: "bar", role: "img",
          "aria-label": `${label}: ${bytes(used)}${share}` },
          h("div", { style: { width: `${(100 * used) / top}%`,
            backgroundColor: `var(--series-${(place % 8) + 1})` } }),
          capacity && h("i", { style: { left: `${(100 * capacity) / top}%` } }));
        const title = model.allocators.length > 1
          ? h("button", { type: "button", "aria-pressed": String(one === model.allocator),
            onclick: () => choose(name) }, label)
          : h("strong", {}, label);
        return h("li", {}, title, bar, h("span", { class: "number" }, `${bytes(used)}${share}`));
      })));
  }
}
