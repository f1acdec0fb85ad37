/** The picture with what moves it: the SVG, the camera, the legend, the keys. */

import { announce, h, svg } from "../../core/dom.js";
import { counted } from "../../core/format.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { Camera } from "./camera.js";
import { Colors } from "./colors.js";
import { boxesOf, Drawing } from "./drawing.js";
import { keyOn } from "./keys.js";
import { LayoutMaker } from "./layout.js";
import { isHolder } from "./picture.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./colors.js").Mode} Mode */
/**
 * @typedef {object} StageOptions
 * @property {(item: number) => void} select
 * @property {(item: number, isOpen: boolean) => void} open
 * @property {() => boolean} leave
 */

export class Stage {
  /** @type {{picture: Picture, layout: import("./nested.js").Layout} | null} */
  #shown = null;
  /** @type {Drawing | null} */
  #drawing = null;
  /** @type {number | null} */
  #selected = null;
  /** The edge that keys chose, and the item at which. @type {{place: number, at: number} | null} */
  #edge = null;
  #maker = new LayoutMaker();

  /**
   * @param {AbortSignal} signal
   * @param {StageOptions} options
   */
  constructor(signal, options) {
    this.options = options;
    this.#maker.start();
    this.content = svg("g");
    this.svg = svg("svg", { class: "gv-picture", role: "group", "aria-label": "Graph" }, this.content);
    this.note = h("div", { class: "gv-note", role: "status" });
    this.legend = h("div", { class: "gv-legend", role: "group", "aria-label": "What the colors mean" });
    this.camera = new Camera(this.svg, this.content, signal);
    this.element = h("section", { class: "panel gv-stage", "aria-label": "Picture of the graph" },
      h("div", { class: "gv-over" }, this.svg, this.camera.buttons, this.camera.map, this.note), this.legend);
    this.svg.addEventListener("click", (event) => this.#click(event));
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    this.svg.addEventListener("focusin", (event) => this.#focused(event));
    const observer = new ResizeObserver(() => this.#resized());
    observer.observe(this.svg);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  #width = 0;

  /** @param {boolean} isBusy */
  setBusy(isBusy) {
    this.element.setAttribute("aria-busy", String(isBusy));
  }

  /** The next picture is shown from its beginning. */
  forget() {
    this.#shown = null;
    this.#maker.destroy();
    hideTip();
  }

  /**
   * @param {Picture} picture
   * @param {Mode} mode
   * @param {number | null} selected
   * @param {{center?: number | undefined, keep?: number | undefined}} where what to show in the
   *   middle, or what stays where it is
   * @returns {Promise<boolean>} false where another one came meanwhile
   */
  async show(picture, mode, selected, { center, keep }) {
    const links = [...picture.edges, ...picture.inside].map(({ source, target }) => ({ source, target }));
    if (!this.#shown) this.note.textContent = `Laying out ${counted(picture.items.length, "item")} …`;
    const layout = await this.#maker.make(boxesOf(picture), links);
    if (!layout) return false;
    const before = this.#shown;
    const hadFocus = this.svg.contains(document.activeElement);
    const old = keep === undefined ? undefined : before?.layout.places.get(keep);
    const at = old && this.camera.at(old.x, old.y);
    this.#shown = { picture, layout };
    this.#selected = selected;
    this.#paint(mode);
    this.camera.setWhole(layout, [...layout.places].filter(([id]) =>
      !picture.items.some((item) => item.id === id && item.is_open)).map(([, place]) => place));
    const goal = layout.places.get(center ?? keep ?? -1);
    if (goal && at) {
      this.camera.hold(goal.x, goal.y, at);
      this.camera.bring(goal);
    } else if (picture.view !== "scopes" || !before || !isSame(before.picture, picture)) {
      this.camera.home();
      if (goal && center !== undefined) this.camera.bring(goal);
    } else if (goal && center !== undefined) {
      this.camera.center(goal);
    }
    const focus = center ?? keep ?? selected;
    if (hadFocus && focus !== null) this.#drawing?.box(focus)?.focus({ preventScroll: true });
    return true;
  }

  /** @param {Mode} mode */
  recolor(mode) {
    if (this.#shown) this.#paint(mode);
  }

  /** @param {number | null} item */
  select(item) {
    this.#selected = item;
    this.#drawing?.select(item);
  }

  /** @param {KeyboardEvent} event anywhere on the page */
  key(event) {
    switch (event.key) {
      case "+": case "=": this.camera.zoom(1.3); return true;
      case "-": this.camera.zoom(1 / 1.3); return true;
      case "0": this.camera.fit(); return true;
      case "Escape": return this.options.leave();
      default: return false;
    }
  }

  destroy() {
    this.#maker.destroy();
    hideTip();
  }

  /** @param {Mode} mode */
  #paint(mode) {
    if (!this.#shown) return;
    const { picture, layout } = this.#shown;
    this.#dropEdge();
    const colors = new Colors(picture, mode);
    this.#drawing = new Drawing(this.content, { picture, layout, colors, selected: this.#selected });
    colors.drawLegend(this.legend);
    this.svg.setAttribute("aria-label", `Graph of ${picture.items.length} items and `
      + `${picture.edges.length} edges; arrow keys go along edges, Enter opens a scope`);
  }

  #resized() {
    if (this.svg.clientWidth === this.#width) return;
    this.#width = this.svg.clientWidth;
    if (this.#shown) this.camera.home();
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const item = this.#itemOf(event.target);
    if (!item) return;
    if (isHolder(item)) this.options.open(item.id, !item.is_open);
    else this.options.select(item.id);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const item = this.#itemOf(event.target), shown = this.#shown;
    if (!item || !shown) return;
    const done = keyOn(event, item.id, shown.picture, shown.layout, {
      focus: (id) => this.#focus(id), select: this.options.select, open: this.options.open,
      edge: (id, by) => this.#nextEdge(id, by), across: () => this.#across(),
      leave: () => this.#dropEdge() || this.options.leave(), camera: this.camera,
    });
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} id @param {1 | -1} by */
  #nextEdge(id, by) {
    const places = this.#drawing?.edgesAt(id) ?? [];
    if (!places.length) {
      announce("No edges");
      return;
    }
    const now = this.#edge?.at === id ? places.indexOf(this.#edge.place) : by > 0 ? -1 : 0;
    const place = /** @type {number} */ (places[(now + by + places.length) % places.length]);
    const chosen = this.#drawing?.chooseEdge(place);
    this.#edge = { place, at: id };
    const text = chosen?.lines.join(", ") ?? "";
    announce(`Edge ${places.indexOf(place) + 1} of ${places.length}: ${text}`);
    const box = (chosen?.path ?? this.#drawing?.box(id))?.getBoundingClientRect();
    const seen = this.svg.getBoundingClientRect();
    if (!box || !chosen) return;
    showTip(Math.min(Math.max(box.x + box.width / 2, seen.left), seen.right),
      Math.min(Math.max(box.y + box.height / 2, seen.top), seen.bottom), chosen.lines);
  }

  /** The other end of the chosen edge, which is then no longer chosen. */
  #across() {
    const edge = this.#edge && this.#shown?.picture.edges[this.#edge.place];
    if (!edge || !this.#edge) return null;
    const { at } = this.#edge;
    this.#dropEdge();
    return edge.source === at ? edge.target : edge.source;
  }

  /** Choose no edge; false where none was. */
  #dropEdge() {
    if (!this.#edge) return false;
    this.#edge = null;
    this.#drawing?.chooseEdge(null);
    hideTip();
    return true;
  }

  /** @param {number} id */
  #focus(id) {
    const place = this.#shown?.layout.places.get(id);
    if (place) this.camera.bring(place);
    this.#drawing?.box(id)?.focus({ preventScroll: true });
  }

  /** @param {FocusEvent} event an item that Tab reached may be out of sight */
  #focused(event) {
    const item = this.#itemOf(event.target);
    if (item?.id !== this.#edge?.at) this.#dropEdge();
    const place = item && this.#shown?.layout.places.get(item.id);
    if (place && event.target instanceof Element && event.target.matches(":focus-visible")) {
      this.camera.bring(place);
    }
  }

  /** @param {EventTarget | null} target */
  #itemOf(target) {
    const box = target instanceof Element ? target.closest("[data-item]") : null;
    const id = Number(box?.getAttribute("data-item"));
    return box ? this.#shown?.picture.items.find((item) => item.id === id) : undefined;
  }
}

/** @param {Picture} one @param {Picture} other */
function isSame(one, other) {
  return one.graph === other.graph && one.function === other.function && one.view === other.view;
}
