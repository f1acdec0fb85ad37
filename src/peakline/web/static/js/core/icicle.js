/**
 * A tree whose parts are as wide as their values: an icicle of scopes, a flame graph of calls.
 *
 * The part that is chosen is as wide as the picture, with those around it above; a click chooses a
 * part, and one on a part above goes back to it. Parts that are too narrow to be seen are drawn as
 * one, with how many they are. It is a tree for screen readers and for the arrow keys: up and down
 * between a part and what is in it, left and right beside, Enter chooses, Backspace goes one up.
 */

import { CATEGORIES, REST, inkOn } from "./colors.js";
import { announce, fill, h, svg } from "./dom.js";
import { counted, percent } from "./format.js";
import { onTheme, palette } from "./theme.js";
import { hideTip, showTip } from "./tooltip.js";

const ROW_PX = 22;
const NARROWEST_PX = 3;
const GAP_PX = 1;
const MOST_ROWS = 60;
/** The rows above a tree of which one branch is nearly all have that branch's color. */
const NEARLY_ALL = 0.95;

/**
 * The columns of a tree: an entry per part, the root first, parents before their children. Children
 * lie beside each other in their order; what their values lack of the parent's is left empty.
 * @typedef {object} Tree
 * @property {string[]} id
 * @property {string[]} parent the parent's id; "" for the root
 * @property {string[]} label
 * @property {number[]} value
 * @property {string[]} [note] further lines of a part's tip, one text each
 * @property {boolean[]} [isRest] a part that stands for many and cannot be chosen
 */
/**
 * @typedef {object} Options
 * @property {string} label what the picture shows, for those who do not see it
 * @property {(value: number) => string} text of a value, such as `bytes`
 * @property {(id: string) => void} choose a part's id; the root's shows everything
 * @property {(place: number) => string} [color] a color of the stylesheet, by its name
 * @property {string} [height] of CSS, beyond which it scrolls
 */

export class Icicle {
  /** @type {Tree | null} */
  #tree = null;
  #chosen = "";
  /** @type {Map<string, number>} */
  #places = new Map();
  /** @type {number[][]} the places of each part's children */
  #children = [];
  /** @type {string[]} */
  #colors = [];
  /** @type {{place: number, row: number, element: HTMLElement}[]} */
  #drawn = [];
  #active = -1;
  /** The part that stands for what is chosen beside the picture. */
  #marked = "";
  #width = 0;
  #id = `icicle-${++made}`;

  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.element = h("div", { class: "icicle", role: "tree", tabindex: 0, "aria-label": options.label,
      style: { maxHeight: options.height ?? "none" } });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("pointermove", (event) => this.#hover(event));
    this.element.addEventListener("pointerleave", hideTip);
    this.element.addEventListener("click", (event) => {
      const result = this.#at(event);
      if (result !== undefined) this.#choose(result);
    });
    this.observer = new ResizeObserver(() => {
      if (this.element.clientWidth !== this.#width) this.#draw();
    });
    this.observer.observe(this.element);
    this.ends = onTheme(() => {
      this.#paint();
      this.#draw();
    });
  }

  /**
   * @param {Tree} tree
   * @param {string} [chosen] the id of a part; "" is the root
   */
  show(tree, chosen = "") {
    this.#tree = tree;
    this.#places = new Map(tree.id.map((id, place) => [id, place]));
    this.#children = tree.id.map(() => /** @type {number[]} */ ([]));
    tree.parent.forEach((parent, place) => {
      const above = this.#places.get(parent);
      if (place && above !== undefined) this.#children[above]?.push(place);
    });
    this.#paint();
    this.#active = -1;
    this.select(chosen);
  }

  /** @param {string} id of the part that is as wide as the picture */
  select(id) {
    this.#chosen = this.#places.has(id) ? id : this.#tree?.id[0] ?? "";
    this.#draw();
  }

  /**
   * Mark the part of what is chosen beside the picture, or the innermost one around it that is drawn.
   * @param {string} id "" for none
   */
  mark(id) {
    this.#marked = id;
    this.#paintMark();
  }

  /** The picture as it is drawn, to be taken along; null where nothing is. */
  picture() {
    const rows = this.#drawn.map(({ row }) => row);
    if (!rows.length) return null;
    const parts = this.#drawn.map(({ element }) => {
      const { offsetLeft: x, offsetTop: y, offsetWidth: width, offsetHeight: height } = element;
      const { backgroundColor: fill, color, fontFamily, fontSize } = getComputedStyle(element);
      // What lies in an SVG of its own is cut at its edges.
      return svg("svg", { x, y, width, height }, svg("rect", { width, height, fill }),
        svg("text", { x: 4, y: height / 2, "dominant-baseline": "central", fill: color,
          "font-family": fontFamily, "font-size": fontSize }, element.textContent));
    });
    return svg("svg", { width: this.#width, height: (Math.max(...rows) + 1) * ROW_PX }, parts);
  }

  #paintMark() {
    const drawn = new Map(this.#drawn.map(({ place, element }) => [place, element]));
    for (const element of drawn.values()) {
      element.classList.remove("marked");
      element.removeAttribute("aria-current");
    }
    let place = this.#places.get(this.#marked);
    while (place !== undefined && !drawn.has(place)) place = this.#parent(place);
    // The outermost part around it says nothing.
    const element = place ? drawn.get(place) : undefined;
    element?.classList.add("marked");
    element?.setAttribute("aria-current", "true");
  }

  destroy() {
    this.ends();
    this.observer.disconnect();
    hideTip();
  }

  /** The colors of all parts: that of the outermost part around them, where the tree branches. */
  #paint() {
    const tree = this.#tree;
    if (!tree) return;
    const { color } = this.options;
    const named = palette();
    let trunk = 0;
    const trunks = new Set([trunk]);
    for (;;) {
      const [only, ...others] = this.#children[trunk] ?? [];
      if (only === undefined || others.length
          || (tree.value[only] ?? 0) < NEARLY_ALL * (tree.value[trunk] ?? 0)) break;
      trunk = only;
      trunks.add(trunk);
    }
    let branches = 0;
    /** @type {string[]} */
    const names = [];
    tree.id.forEach((_, place) => {
      const above = this.#places.get(tree.parent[place] ?? "") ?? 0;
      if (color) names[place] = color(place);
      else if (trunks.has(place) || tree.isRest?.[place]) names[place] = REST;
      else if (above !== trunk) names[place] = names[above] ?? REST;
      else names[place] = CATEGORIES[branches++ % CATEGORIES.length] ?? REST;
    });
    this.#colors = names.map((name) => named[name] ?? "");
  }

  #draw() {
    const tree = this.#tree, width = this.element.clientWidth;
    this.#width = width;
    if (!tree || !width) return;
    const root = this.#places.get(this.#chosen) ?? 0;
    this.#drawn = [];
    let row = 0;
    for (const place of this.#above(root)) this.#part(place, row++, 0, width, "around");
    let deepest = row;
    /** @type {[place: number, row: number, left: number, width: number][]} */
    const waiting = [[root, row, 0, width]];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [place, at, left, wide] = next;
      this.#part(place, at, left, wide);
      deepest = Math.max(deepest, at);
      const children = this.#children[place] ?? [], whole = tree.value[place] ?? 0;
      if (!children.length || whole <= 0 || at + 1 >= MOST_ROWS) continue;
      let from = left, narrow = 0, narrowWidth = 0;
      for (const child of children) {
        const share = (wide * Math.max(tree.value[child] ?? 0, 0)) / whole;
        if (share < NARROWEST_PX) {
          narrow += 1;
          narrowWidth += share;
          continue;
        }
        waiting.push([child, at + 1, from, share]);
        from += share;
      }
      // One place for all that are too narrow, behind the others: none is lost.
      if (narrowWidth >= NARROWEST_PX) this.#narrow(narrow, at + 1, from, narrowWidth);
      if (narrowWidth >= NARROWEST_PX) deepest = Math.max(deepest, at + 1);
    }
    const order = [...this.#drawn].sort((one, other) => one.row - other.row);
    fill(this.element, ...order.map(({ element }) => element),
      h("div", { role: "presentation", style: { height: `${(deepest + 1) * ROW_PX}px` } }));
    this.#move(this.#drawn.some(({ place }) => place >= 0 && place === this.#active) ? this.#active : root, false);
    this.#paintMark();
  }

  /**
   * @param {number} place
   * @param {number} row
   * @param {number} left
   * @param {number} width
   */
  #part(place, row, left, width, kind = "") {
    const tree = this.#tree;
    if (!tree) return;
    const color = this.#colors[place] ?? "", isRest = tree.isRest?.[place] ?? false;
    const element = h("div", {
      class: `part ${kind}`, role: "treeitem", id: `${this.#id}-${place}`, "aria-level": row + 1,
      "aria-label": `${tree.label[place]}: ${this.#facts(place)}`,
      "aria-expanded": this.#children[place]?.length ? "true" : null,
      "aria-selected": String(tree.id[place] === this.#chosen), dataset: { place: String(place) },
      style: { left: `${left}px`, width: `${Math.max(width - GAP_PX, 1)}px`, top: `${row * ROW_PX}px`,
        ...(isRest ? {} : { backgroundColor: color, color: inkOn(color) }) },
    }, width > 24 ? tree.label[place] : null);
    if (isRest) element.classList.add("rest");
    this.#drawn.push({ place, row, element });
  }

  /**
   * @param {number} many
   * @param {number} row
   * @param {number} left
   * @param {number} width
   */
  #narrow(many, row, left, width) {
    const text = `${counted(many, "narrow part")}`;
    this.#drawn.push({ place: -1, row, element: h("div", {
      class: "part rest", role: "treeitem", "aria-level": row + 1, "aria-selected": "false",
      "aria-label": `${text}, too narrow to be drawn: choose what is around them`,
      title: `${text}, too narrow to be drawn`,
      style: { left: `${left}px`, width: `${Math.max(width - GAP_PX, 1)}px`, top: `${row * ROW_PX}px` },
    }, width > 60 ? text : null) });
  }

  /** @param {number} place */
  #facts(place) {
    const tree = this.#tree;
    const value = tree?.value[place] ?? 0, whole = tree?.value[0] ?? 0;
    const note = tree?.note?.[place];
    return `${this.options.text(value)}, ${percent(whole ? value / whole : 0)}`
      + (note ? `, ${note}` : "");
  }

  /** The parts around one, the outermost first. @param {number} place */
  #above(place) {
    const results = [];
    for (let at = this.#parent(place); at !== undefined; at = this.#parent(at)) results.unshift(at);
    return results;
  }

  /** @param {number} place */
  #parent(place) {
    return place > 0 ? this.#places.get(this.#tree?.parent[place] ?? "") : undefined;
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const part = /** @type {Element} */ (event.target).closest(".part");
    const place = part instanceof HTMLElement ? part.dataset["place"] : undefined;
    return place === undefined ? undefined : Number(place);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const place = this.#at(event);
    if (place === undefined) {
      hideTip();
      return;
    }
    const note = this.#tree?.note?.[place];
    const value = this.#tree?.value[place] ?? 0, whole = this.#tree?.value[0] ?? 0;
    showTip(event.clientX, event.clientY, [this.#tree?.label[place] ?? "",
      `${this.options.text(value)}, ${percent(whole ? value / whole : 0)}`, ...(note ? [note] : [])]);
  }

  /** @param {number} place */
  #choose(place) {
    const id = this.#tree?.id[place];
    if (id === undefined || this.#tree?.isRest?.[place]) return;
    hideTip();
    // The one that is chosen gives way to what is around it.
    const above = this.#parent(place);
    const next = id === this.#chosen && above !== undefined ? this.#tree?.id[above] ?? id : id;
    this.#active = this.#places.get(next) ?? 0;
    this.select(next);
    this.options.choose(next);
    announce(`${this.#tree?.label[this.#active]} is as wide as the picture: ${this.#facts(this.#active)}`);
  }

  /**
   * @param {number} place
   * @param {boolean} isSaid
   */
  #move(place, isSaid = true) {
    this.#active = place;
    for (const { place: one, element } of this.#drawn) {
      element.classList.toggle("active", one === place);
      if (one !== place) continue;
      this.element.setAttribute("aria-activedescendant", element.id);
      if (isSaid) {
        element.scrollIntoView({ block: "nearest" });
        announce(element.getAttribute("aria-label") ?? "");
      }
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const next = this.#next(event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (next !== null && next >= 0) this.#move(next);
  }

  /**
   * Where a key goes: null where there is nothing, undefined where it is none of ours.
   * @param {string} key
   */
  #next(key) {
    const seen = new Set(this.#drawn.map(({ place }) => place));
    const active = this.#active;
    const beside = (/** @type {number} */ step) => {
      const above = this.#parent(active);
      const all = (above === undefined ? [] : this.#children[above] ?? []).filter((one) => seen.has(one));
      return all[all.indexOf(active) + step] ?? null;
    };
    switch (key) {
      case "ArrowDown": return (this.#children[active] ?? []).find((one) => seen.has(one)) ?? null;
      case "ArrowUp": return this.#parent(active) ?? null;
      case "ArrowRight": return beside(1);
      case "ArrowLeft": return beside(-1);
      case "Home": return this.#places.get(this.#chosen) ?? 0;
      case "Enter": case " ":
        this.#choose(active);
        return null;
      case "Backspace": case "Escape": {
        const chosen = this.#places.get(this.#chosen) ?? 0;
        if (!chosen) return key === "Escape" ? undefined : null;
        this.#choose(chosen);
        return null;
      }
      default: return undefined;
    }
  }
}

let made = 0;
