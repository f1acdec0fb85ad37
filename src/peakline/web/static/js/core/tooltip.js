/** One tooltip for canvases; elements have titles and labels of their own. */

import { fill, h } from "./dom.js";

const AWAY_PX = 14;
/** @type {HTMLElement | null} */
let box = null;

/**
 * Show lines beside a place of the window.
 * @param {number} x
 * @param {number} y
 * @param {string[]} lines the first is the title
 */
export function showTip(x, y, [title = "", ...lines]) {
  if (!box) {
    box = h("div", { class: "tip", "aria-hidden": "true" });
    document.body.append(box);
  }
  fill(box, h("strong", {}, title), ...lines.map((line) => h("div", {}, line)));
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const left = x + AWAY_PX + width > innerWidth ? x - AWAY_PX - width : x + AWAY_PX;
  const top = y + AWAY_PX + height > innerHeight ? y - AWAY_PX - height : y + AWAY_PX;
  box.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
}

export function hideTip() {
  if (box) box.hidden = true;
}
