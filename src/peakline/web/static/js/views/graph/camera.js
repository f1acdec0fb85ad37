/** Which part of the picture is seen: wheel, drag and pinch, buttons, and a small map of all of it. */

import { h, svg } from "../../core/dom.js";

const LEAST = 0.05, MOST = 3, READABLE = 1, HOME = 0.65;
const STEP = 1.3, WHEEL = 0.0016, PAN_PX = 60, CLICK_PX = 4, AIR = 12, MOVE_MS = 220;

/** The height of the note, which lies on the picture's lower edge and must not hide nodes. */
const NOTE = 36;

/** @typedef {{x: number, y: number, width: number, height: number}} Rect */

export class Camera {
  /** The scale, and where the picture's origin is. */
  #scale = 1;
  #x = 0;
  #y = 0;
  #whole = { width: 1, height: 1 };
  /** @type {Map<number, [number, number]>} the pointers that are down */
  #pointers = new Map();
  #moved = false;
  #frame = 0;

  /**
   * @param {SVGSVGElement} element
   * @param {SVGGElement} content
   * @param {AbortSignal} signal
   */
  constructor(element, content, signal) {
    this.element = element;
    this.content = content;
    this.seen = svg("rect", { class: "gv-seen" });
    this.marks = svg("g");
    this.map = svg("svg", { class: "gv-map", "aria-hidden": "true" }, this.marks, this.seen);
    this.percent = h("span", { class: "gv-percent quiet" });
    const button = (/** @type {string} */ title, /** @type {string} */ sign, /** @type {() => void} */ run) =>
      h("button", { type: "button", class: "plain", title, "aria-label": title, onclick: run }, sign);
    this.buttons = h("div", { class: "gv-zoom" },
      button("Zoom in (+)", "+", () => this.zoom(STEP)), button("Zoom out (-)", "−", () => this.zoom(1 / STEP)),
      button("Show all (0)", "⤢", () => this.fit()), this.percent);
    const options = { signal };
    element.addEventListener("wheel", (event) => this.#wheel(event), { ...options, passive: false });
    element.addEventListener("pointerdown", (event) => this.#down(event), options);
    element.addEventListener("pointermove", (event) => this.#move(event), options);
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
      element.addEventListener(name, (event) => void this.#pointers.delete(event.pointerId), options);
    }
    // A drag is no click, wherever it ends.
    element.addEventListener("click", (event) => {
      if (!this.#moved) return;
      event.stopPropagation();
      event.preventDefault();
    }, { ...options, capture: true });
    this.map.addEventListener("pointerdown", (event) => this.#jump(event), options);
    signal.addEventListener("abort", () => cancelAnimationFrame(this.#frame));
  }

  /**
   * The picture has this size now; `boxes` are drawn on the map.
   * @param {{width: number, height: number}} whole
   * @param {Rect[]} boxes
   */
  setWhole(whole, boxes) {
    this.#whole = whole;
    this.map.setAttribute("viewBox", `0 0 ${whole.width} ${whole.height}`);
    this.marks.replaceChildren(...boxes.map(({ x, y, width, height }) =>
      svg("rect", { x, y, width, height })));
    this.#apply();
  }

  /**
   * Show all of it, no larger than it is.
   * @param {number} [least] the least scale: of a large picture the upper part is shown
   */
  fit(least = LEAST) {
    const width = this.element.clientWidth, height = this.element.clientHeight - NOTE;
    const scale = Math.min(READABLE, (width - 2 * AIR) / this.#whole.width,
      (height - 2 * AIR) / this.#whole.height);
    this.#scale = Math.min(Math.max(scale, least), MOST);
    this.#x = (width - this.#whole.width * this.#scale) / 2;
    this.#y = Math.max(AIR, (height - this.#whole.height * this.#scale) / 2);
    this.#apply();
  }

  /** Show all of it, or the upper part where nothing could be read otherwise. */
  home() {
    this.fit(HOME);
  }

  /**
   * Show a part in the middle, large enough to be read.
   * @param {Rect} rect
   */
  center({ x, y, width, height }) {
    const scale = Math.max(this.#scale, 0.7);
    const fits = Math.min(scale, (this.element.clientWidth - 2 * AIR) / width);
    this.#scale = Math.max(fits, LEAST);
    const goal = [this.element.clientWidth / 2 - (x + width / 2) * this.#scale,
      this.element.clientHeight / 2 - (y + Math.min(height, 400) / 2) * this.#scale];
    this.#glide(goal[0] ?? 0, goal[1] ?? 0);
  }

  /**
   * Let a part be seen with as little movement as possible.
   * @param {Rect} rect
   */
  bring({ x, y, width, height }) {
    const left = x * this.#scale + this.#x, top = y * this.#scale + this.#y;
    const right = left + width * this.#scale, bottom = top + height * this.#scale;
    const { clientWidth, clientHeight } = this.element;
    if (left < 0 || right > clientWidth) this.#x += left < 0 ? AIR - left : Math.max(clientWidth - AIR - right, AIR - left);
    if (top < 0 || bottom > clientHeight) this.#y += top < 0 ? AIR - top : Math.max(clientHeight - AIR - bottom, AIR - top);
    this.#apply();
  }

  /**
   * Where a point of the picture is on the screen, so that it can be put back there.
   * @param {number} x @param {number} y
   * @returns {[number, number]}
   */
  at(x, y) {
    return [x * this.#scale + this.#x, y * this.#scale + this.#y];
  }

  /**
   * Put a point of the picture at a place of the screen.
   * @param {number} x @param {number} y @param {[number, number]} place
   */
  hold(x, y, [left, top]) {
    this.#x = left - x * this.#scale;
    this.#y = top - y * this.#scale;
    this.#apply();
  }

  /**
   * @param {number} factor above 1 shows less
   * @param {[number, number]} [at] what stays where it is, in pixels of the element
   */
  zoom(factor, at = [this.element.clientWidth / 2, this.element.clientHeight / 2]) {
    const scale = Math.min(Math.max(this.#scale * factor, LEAST), MOST);
    this.#x = at[0] - ((at[0] - this.#x) / this.#scale) * scale;
    this.#y = at[1] - ((at[1] - this.#y) / this.#scale) * scale;
    this.#scale = scale;
    this.#apply();
  }

  /** @param {number} dx @param {number} dy steps */
  pan(dx, dy) {
    this.#x -= dx * PAN_PX;
    this.#y -= dy * PAN_PX;
    this.#apply();
  }

  /** @param {number} x @param {number} y */
  #glide(x, y) {
    cancelAnimationFrame(this.#frame);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#x = x;
      this.#y = y;
      this.#apply();
      return;
    }
    const [fromX, fromY, began] = [this.#x, this.#y, performance.now()];
    const step = () => {
      const part = Math.min(1, (performance.now() - began) / MOVE_MS);
      const eased = 1 - (1 - part) ** 3;
      this.#x = fromX + (x - fromX) * eased;
      this.#y = fromY + (y - fromY) * eased;
      this.#apply();
      if (part < 1) this.#frame = requestAnimationFrame(step);
    };
    step();
  }

  #apply() {
    this.content.setAttribute("transform",
      `translate(${this.#x} ${this.#y}) scale(${this.#scale})`);
    this.percent.textContent = `${Math.round(this.#scale * 100)}%`;
    const { clientWidth, clientHeight } = this.element;
    const { width, height } = this.#whole;
    const seen = { x: -this.#x / this.#scale, y: -this.#y / this.#scale,
      width: clientWidth / this.#scale, height: clientHeight / this.#scale };
    for (const [name, value] of Object.entries(seen)) this.seen.setAttribute(name, String(value));
    const isWhole = seen.x <= 0 && seen.y <= 0 && seen.x + seen.width >= width
      && seen.y + seen.height >= height;
    this.map.toggleAttribute("hidden", isWhole);
    this.seen.setAttribute("stroke-width", String(width / 60));
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(-event.deltaY * scale * WHEEL * 3), this.#inside(event));
      return;
    }
    this.#x -= (event.shiftKey ? event.deltaY : event.deltaX) * scale;
    this.#y -= (event.shiftKey ? 0 : event.deltaY) * scale;
    this.#apply();
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0) return;
    cancelAnimationFrame(this.#frame);
    this.#pointers.set(event.pointerId, this.#inside(event));
    if (this.#pointers.size === 1) this.#moved = false;
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const now = this.#inside(event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (!this.#moved && Math.hypot(dx, dy) < CLICK_PX) return;
    if (!this.#moved) this.element.setPointerCapture(event.pointerId);
    this.#moved = true;
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const far = (/** @type {[number, number]} */ [x, y]) => Math.hypot(x - other[0], y - other[1]);
      this.zoom(far(now) / Math.max(far(before), 1), other);
    } else {
      this.#x += dx;
      this.#y += dy;
      this.#apply();
    }
    this.#pointers.set(event.pointerId, now);
  }

  /** @param {PointerEvent} event on the map */
  #jump(event) {
    const box = this.map.getBoundingClientRect();
    const { width, height } = this.#whole;
    const scale = Math.min(box.width / width, box.height / height);
    const x = (event.clientX - box.left - (box.width - width * scale) / 2) / scale;
    const y = (event.clientY - box.top - (box.height - height * scale) / 2) / scale;
    this.hold(x, y, [this.element.clientWidth / 2, this.element.clientHeight / 2]);
  }

  /**
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  #inside(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}
