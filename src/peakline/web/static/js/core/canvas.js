/** A canvas that is as sharp as the screen, and drawn only when something changed. */

import { visible } from "./dom.js";
import { onTheme } from "./theme.js";

/** @type {WeakSet<CanvasRenderingContext2D>} those that write names as `visible` spells them */
const spelling = new WeakSet();

/**
 * The context of a canvas, which writes names as `visible` spells them; null in no browser of ours.
 * @param {HTMLCanvasElement} canvas
 */
export function contextOf(canvas) {
  const context = canvas.getContext("2d");
  if (context && !spelling.has(context)) {
    const write = context.fillText.bind(context);
    context.fillText = (text, ...where) => write(visible(text), ...where);
    spelling.add(context);
  }
  return context;
}

/**
 * Keep a canvas at the size that the stylesheet gives it; `draw` gets a context in CSS pixels.
 *
 * `pixels` is its width in the screen's own pixels. `resized` is told of each new size, before it is
 * drawn.
 */
export class Surface {
  #frame = 0;
  #ends = () => {};

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} draw
   * @param {() => void} [resized]
   */
  constructor(canvas, draw, resized) {
    this.canvas = canvas;
    this.draw = draw;
    this.width = 0;
    this.height = 0;
    const observer = new ResizeObserver(() => {
      const { clientWidth, clientHeight } = canvas;
      if (clientWidth === this.width && clientHeight === this.height && !this.#isBlurred()) return;
      this.width = clientWidth;
      this.height = clientHeight;
      resized?.();
      // At once: a canvas that waits for the next frame shows its old picture stretched.
      this.#paint();
    });
    observer.observe(canvas);
    const ends = onTheme(() => this.redraw());
    this.#ends = () => {
      observer.disconnect();
      ends();
      cancelAnimationFrame(this.#frame);
    };
  }

  get pixels() {
    return Math.max(1, Math.round(this.width * devicePixelRatio));
  }

  /** Draw in the next frame, however often this is called before. */
  redraw() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  destroy() {
    this.#ends();
  }

  #isBlurred() {
    return this.canvas.width !== this.pixels;
  }

  #paint() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const context = contextOf(this.canvas);
    if (!context || !this.width || !this.height) return;
    const height = Math.max(1, Math.round(this.height * devicePixelRatio));
    if (this.canvas.width !== this.pixels) this.canvas.width = this.pixels;
    if (this.canvas.height !== height) this.canvas.height = height;
    context.setTransform(this.canvas.width / this.width, 0, 0, height / this.height, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.draw(context, this.width, this.height);
  }
}
