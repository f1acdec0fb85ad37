/** Zoom and pan of a chart over time by wheel, drag and keys, as trace viewers have them. */

const WHEEL_ZOOM = 0.0016;
const KEY_ZOOM = 0.8;
const KEY_PAN = 0.15;
const CLICK_PX = 4;
const LINE_PX = 16;

/**
 * @typedef {object} Chart
 * @property {import("./viewport.js").Viewport} viewport
 * @property {() => number} left pixels from the element's left edge to where time begins
 * @property {() => number} width pixels that the viewport takes
 * @property {(x: number, y: number, event: PointerEvent) => void} [click] in the element's pixels
 * @property {(x: number, y: number) => void} [hover]
 * @property {() => void} [leave]
 * @property {(dy: number) => void} [scroll] a drag or wheel up and down, in pixels
 * @property {(from: number, to: number, done: boolean, top: number, bottom: number) => void} [measure]
 *   a range, dragged with Shift, and between which heights
 * @property {() => boolean} [measures] whether dragging measures without Shift, too
 */

/**
 * Make an element move a viewport; returns what ends that.
 *
 * Wheel with Ctrl (or pinching) zooms where the pointer is, a wheel sideways or with Shift pans,
 * dragging pans, dragging with Shift measures. A wheel alone scrolls, where the chart scrolls, and
 * zooms where it does not. Two fingers zoom by how far they are apart, and pan.
 * @param {HTMLElement} element
 * @param {Chart} chart
 */
export function attachGestures(element, chart) {
  const ends = new AbortController();
  const options = { signal: ends.signal };
  const view = chart.viewport;
  /** @type {{x: number, y: number, lastX: number, lastY: number, measured: boolean, moved: boolean} | null} */
  let drag = null;
  /** @type {Map<number, [number, number]>} */
  const fingers = new Map();
  const timeAt = (/** @type {number} */ x) => view.time(x - chart.left(), chart.width());

  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
    const dx = event.deltaX * scale, dy = event.deltaY * scale;
    if (event.ctrlKey || event.metaKey || (!chart.scroll && !event.shiftKey && dy)) {
      view.zoom(Math.exp(dy * WHEEL_ZOOM * (event.ctrlKey ? 3 : 1)), timeAt(at(event)[0]));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      view.pan((dx || dy) / chart.width());
    } else {
      chart.scroll?.(dy);
    }
  }, { ...options, passive: false });

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = at(event);
    element.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [x, y]);
    if (fingers.size > 1) {
      // A second finger: what the first one began is over.
      drag = null;
      chart.leave?.();
      return;
    }
    const measured = (event.shiftKey || chart.measures?.() === true) && !!chart.measure;
    drag = { x, y, lastX: x, lastY: y, measured, moved: false };
  }, options);

  element.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (fingers.size > 1) {
      pinch(event.pointerId, x, y);
      return;
    }
    if (!drag) {
      if (event.pointerType !== "touch") chart.hover?.(x, y);
      return;
    }
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < CLICK_PX) return;
    drag.moved = true;
    if (drag.measured) {
      chart.measure?.(...ordered(timeAt(drag.x), timeAt(x)), false, ...ordered(drag.y, y));
    } else {
      view.pan((drag.lastX - x) / chart.width());
      chart.scroll?.(drag.lastY - y);
    }
    drag.lastX = x;
    drag.lastY = y;
  }, options);

  element.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (!drag) return;
    const [x, y] = at(event);
    const { moved, measured, x: begin, y: top } = drag;
    drag = null;
    if (!moved) chart.click?.(x, y, event);
    else if (measured) chart.measure?.(...ordered(timeAt(begin), timeAt(x)), true, ...ordered(top, y));
  }, options);
  element.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    drag = null;
  }, options);
  element.addEventListener("pointerleave", () => chart.leave?.(), options);
  return () => ends.abort();

  /**
   * One of two fingers moved: what is between them stays there.
   * @param {number} moved its pointer
   * @param {number} x
   * @param {number} y
   */
  function pinch(moved, x, y) {
    const before = fingers.get(moved);
    const other = [...fingers].find(([id]) => id !== moved)?.[1];
    if (!before || !other) return;
    const middle = (before[0] + other[0]) / 2, next = (x + other[0]) / 2;
    const apart = Math.max(16, Math.hypot(before[0] - other[0], before[1] - other[1]));
    const now = Math.max(16, Math.hypot(x - other[0], y - other[1]));
    view.zoom(apart / now, timeAt(middle));
    view.pan((middle - next) / chart.width());
    chart.scroll?.((before[1] - y) / 2);
    fingers.set(moved, [x, y]);
  }

  /**
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  function at(event) {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

/**
 * W and S zoom, A and D and the arrows pan, 0 shows all; returns whether the key was one of them.
 * @param {KeyboardEvent} event
 * @param {import("./viewport.js").Viewport} viewport
 * @param {number} [at] the time that W and S keep in place
 */
export function moveByKey(event, viewport, at) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return false;
  const more = event.shiftKey ? 3 : 1;
  switch (event.key.length === 1 ? event.key.toLowerCase() : event.key) {
    case "w": case "+": case "=": viewport.zoom(KEY_ZOOM ** more, at); break;
    case "s": case "-": viewport.zoom(KEY_ZOOM ** -more, at); break;
    case "a": case "ArrowLeft": viewport.pan(-KEY_PAN * more); break;
    case "d": case "ArrowRight": viewport.pan(KEY_PAN * more); break;
    case "0": viewport.showAll(); break;
    default: return false;
  }
  event.preventDefault();
  return true;
}

/**
 * Whether the key goes into a field, or moves in something that has keys of its own.
 * @param {Event} event
 */
export function isTyping(event) {
  const target = event.target;
  return target instanceof Element
    && target.closest("input, textarea, select, [contenteditable], [role=grid], dialog") !== null;
}

/**
 * @param {number} one
 * @param {number} other
 * @returns {[number, number]}
 */
function ordered(one, other) {
  return one <= other ? [one, other] : [other, one];
}
