/** A strip of everything with a window on what is in view: drag it, its edges, or move it by keys. */

import { moveByKey } from "./gestures.js";

const HANDLE = 6;
const LEAST = 8;

/**
 * @typedef {object} Brush
 * @property {() => import("./viewport.js").Viewport} viewport
 * @property {() => [number, number]} edges pixels between which everything is drawn
 * @property {(from: number, to: number, done: boolean) => void} [measure] a range, dragged with Shift
 */

/**
 * @param {HTMLElement} element
 * @param {Brush} brush
 * @returns {() => void} what ends that
 */
export function attachBrush(element, brush) {
  const ends = new AbortController(), options = { signal: ends.signal };
  /** @type {{kind: "move" | "from" | "to" | "measure", x: number, from: number, to: number} | null} */
  let drag = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const view = brush.viewport(), x = event.offsetX, [begin, end] = windowOf(brush);
    element.setPointerCapture(event.pointerId);
    const kind = event.shiftKey && brush.measure ? "measure" : Math.abs(x - begin) <= HANDLE ? "from"
      : Math.abs(x - end) <= HANDLE ? "to" : "move";
    if (kind === "move" && (x < begin || x > end)) {
      const at = timeOf(x);
      view.show(at - view.span / 2, at + view.span / 2);
    }
    drag = { kind, x, from: view.from, to: view.to };
  }, options);
  element.addEventListener("pointermove", (event) => {
    const view = brush.viewport(), x = event.offsetX, [begin, end] = windowOf(brush);
    const isEdge = Math.min(Math.abs(x - begin), Math.abs(x - end)) <= HANDLE;
    element.style.cursor = isEdge || (drag && drag.kind !== "move") ? "ew-resize"
      : x > begin && x < end ? "grab" : "pointer";
    if (!drag) return;
    const { kind, from, to } = drag, at = timeOf(x), by = at - timeOf(drag.x);
    if (kind === "measure") measure(drag.x, x, false);
    // All is in view: what is dragged is a new window.
    else if (kind === "move" && view.isWhole && Math.abs(x - drag.x) > LEAST) {
      drag = { kind: x > drag.x ? "to" : "from", x, from: Math.min(at - by, at), to: Math.max(at - by, at) };
    } else if (kind === "move") view.show(from + by, to + by);
    else if (kind === "from") view.show(Math.min(from + by, to - 1), to);
    else view.show(from, Math.max(to + by, from + 1));
  }, options);
  element.addEventListener("pointerup", (event) => {
    if (drag?.kind === "measure") measure(drag.x, event.offsetX, true);
    drag = null;
  }, options);
  element.addEventListener("pointercancel", () => void (drag = null), options);
  element.addEventListener("dblclick", () => brush.viewport().showAll(), options);
  element.addEventListener("keydown", (event) => void moveByKey(event, brush.viewport()), options);
  return () => ends.abort();

  /** @param {number} x */
  function timeOf(x) {
    const { first, last } = brush.viewport(), [left, right] = brush.edges();
    return first + ((x - left) / Math.max(right - left, 1)) * (last - first);
  }

  /**
   * @param {number} one
   * @param {number} other
   * @param {boolean} done
   */
  function measure(one, other, done) {
    brush.measure?.(timeOf(Math.min(one, other)), timeOf(Math.max(one, other)), done);
  }
}

/**
 * The window's edges in pixels, wide enough to be taken hold of.
 * @param {Brush} brush
 * @returns {[number, number]}
 */
export function windowOf(brush) {
  const { first, last, from, to } = brush.viewport(), [left, right] = brush.edges();
  const x = (/** @type {number} */ at) => left + ((at - first) / (last - first)) * (right - left);
  const [begin, end] = [x(from), x(to)], more = Math.max(0, (LEAST - (end - begin)) / 2);
  return [begin - more, end + more];
}

/**
 * What is not in view grows pale, what is has a border with handles.
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, string>} colors
 * @param {Brush} brush
 * @param {number} height
 */
export function paintWindow(context, colors, brush, height) {
  const [begin, end] = windowOf(brush), [left, right] = brush.edges();
  context.fillStyle = colors["ground"] ?? "";
  context.globalAlpha = 0.6;
  context.fillRect(left, 0, Math.max(0, begin - left), height);
  context.fillRect(end, 0, Math.max(0, right - end), height);
  context.globalAlpha = 1;
  context.strokeStyle = context.fillStyle = colors["accent"] ?? "";
  context.lineWidth = 1;
  context.strokeRect(begin + 0.5, 0.5, end - begin - 1, height - 1);
  context.fillRect(begin - 1, height / 2 - 8, 3, 16);
  context.fillRect(end - 2, height / 2 - 8, 3, 16);
}
