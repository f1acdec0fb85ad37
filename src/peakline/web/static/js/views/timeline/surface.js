/** A canvas as large as its place, in the screen's own pixels. */

import { contextOf } from "../../core/canvas.js";
import { h } from "../../core/dom.js";

export class Surface {
  /**
   * @param {Record<string, unknown>} attributes
   * @param {() => void} resized
   */
  constructor(attributes, resized) {
    this.canvas = h("canvas", attributes);
    const context = contextOf(this.canvas);
    if (!context) throw new Error("this browser draws no canvas");
    this.context = context;
    /** In CSS pixels. */
    this.width = 0;
    this.height = 0;
    this.ratio = 1;
    this.observer = new ResizeObserver(() => {
      if (this.measure()) resized();
    });
    this.observer.observe(this.canvas);
  }

  /** Take the size that the canvas has on the screen; whether it changed. */
  measure() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    return true;
  }

  /** The context, cleared, in CSS pixels; null while there is nothing to see of it. */
  begin() {
    if (!this.width || !this.height) return null;
    const { context, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    return context;
  }

  destroy() {
    this.observer.disconnect();
  }
}

/** @type {Map<string, number>} */
const widths = new Map();

/**
 * The longer of two texts that fits, the shorter cut, or "".
 * @param {CanvasRenderingContext2D} context
 * @param {string} long
 * @param {string} short
 * @param {number} room
 */
export function fitted(context, long, short, room) {
  const measured = (/** @type {string} */ text) => {
    let width = widths.get(text);
    if (width === undefined) {
      if (widths.size > 20000) widths.clear();
      width = context.measureText(text).width;
      widths.set(text, width);
    }
    return width;
  };
  const width = measured(short);
  if (width <= room) return measured(long) <= room ? long : short;
  const letters = Math.floor((short.length * room) / width) - 1;
  return letters < 2 ? "" : `${short.slice(0, letters)}…`;
}
