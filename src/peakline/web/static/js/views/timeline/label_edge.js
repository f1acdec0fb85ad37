/** The edge between labels and lanes: it is dragged, or moved by keys; the browser remembers it. */

import { h } from "../../core/dom.js";

const KEY = "peakline.timeline.labels";
const LEAST_PX = 90;
const SHARE = 0.6;
const KEY_PX = 16;

/** The width that the reader chose, in pixels; null for that of the stylesheet. */
export function chosenWidth() {
  const width = Number(localStorage.getItem(KEY));
  return width >= LEAST_PX ? Math.min(width, Math.max(LEAST_PX, innerWidth * SHARE)) : null;
}

/**
 * @param {HTMLElement} main has the width as `--tl-left`
 * @param {() => number} current
 * @param {() => void} changed
 */
export function labelEdge(main, current, changed) {
  const width = chosenWidth();
  if (width) main.style.setProperty("--tl-left", `${width}px`);
  const edge = h("div", { class: "tl-label-edge", role: "separator", tabindex: 0,
    "aria-orientation": "vertical", "aria-label": "Width of the labels", "aria-valuemin": LEAST_PX,
    "aria-valuemax": 1000, "aria-valuenow": Math.round(width ?? 200), title: "drag, or ← →; a double click resets" });
  /** @param {number} to */
  const resize = (to) => {
    const fitted = Math.round(Math.min(Math.max(to, LEAST_PX), Math.max(LEAST_PX, innerWidth * SHARE)));
    main.style.setProperty("--tl-left", `${fitted}px`);
    localStorage.setItem(KEY, String(fitted));
    edge.setAttribute("aria-valuenow", String(fitted));
    changed();
  };
  edge.addEventListener("pointerdown", (event) => {
    edge.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  edge.addEventListener("pointermove", (event) => {
    if (!edge.hasPointerCapture(event.pointerId)) return;
    resize(event.clientX - (edge.parentElement?.getBoundingClientRect().left ?? 0));
  });
  edge.addEventListener("dblclick", () => {
    localStorage.removeItem(KEY);
    main.style.removeProperty("--tl-left");
    changed();
  });
  edge.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -KEY_PX, ArrowRight: KEY_PX }[event.key];
    if (by === undefined) return;
    resize(current() + by);
    event.preventDefault();
    event.stopPropagation();
  });
  return edge;
}
