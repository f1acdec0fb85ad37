/**
 * A table of any length: only the rows in view are elements. Sorted by its headers, moved through
 * with the arrow keys, a row chosen by Enter or a click. Columns can be made wider; what is hidden to
 * the right or left is hinted at by a shadow.
 */

import { announce, fill, h } from "./dom.js";
import { elided } from "./elided.js";
import { bytes, count, percent, time } from "./format.js";
import { Widths } from "./resizing.js";

const ROW_PX = 28;
const MORE_ROWS = 8;
const LEAST_REM = 8;
/** What in a row can have the focus. */
const CONTROLS = "a, button, input";

/**
 * @typedef {object} Column
 * @property {string} key of a row
 * @property {string} title
 * @property {"text" | "bytes" | "time" | "count" | "percent" | "number"} [kind] text by default
 * @property {string} [help] what the column means
 * @property {string} [width] of CSS, such as "12rem"; the first text column takes what is left
 * @property {(row: any) => Node | string | null} [cell] instead of the value's own text
 * @property {boolean} [unsorted] cannot be sorted by
 */
/**
 * @typedef {object} TableOptions
 * @property {string} label what the table is, for those who do not see it
 * @property {Column[]} columns
 * @property {string} [sort] a column's key; `-key` is descending
 * @property {(sort: string) => void} [onSort] the reader sorted
 * @property {boolean} [remote] the rows come sorted: only `onSort` is told. Those that did not come
 *   yet may be missing (of an array with holes)
 * @property {(first: number, last: number) => void} [onSeen] the rows from `first` to before `last` are
 *   elements now
 * @property {(row: any, place: number) => void} [onChoose]
 * @property {(row: any) => boolean} [isChosen]
 * @property {(row: any | null) => void} [onPoint] the pointer or the arrow keys are at a row, at none
 * @property {(row: any) => boolean} [isPointed] whether a row is marked, since the pointer is elsewhere
 *   at what it is about
 * @property {string} [nothing] shown when there are no rows
 * @property {string} [height] of CSS; by default as high as its rows, at most 60% of the window
 */

export class DataTable {
  /** @type {any[]} */
  #rows = [];
  #active = 0;
  #first = -1;
  #last = -1;
  /** The rows that are elements now. @type {any[]} */
  #drawn = [];

  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    this.sort = options.sort ?? "";
    this.body = h("div", { class: "rows" });
    this.head = h("div", { class: "head", role: "row" });
    this.space = h("div", { class: "space", role: "rowgroup" }, this.body);
    this.element = h("div", {
      class: "table", role: "grid", tabindex: 0, "aria-label": options.label,
      style: { maxHeight: options.height ?? "60vh" },
    }, h("div", { role: "rowgroup", class: "headgroup" }, this.head), this.space);
    const widths = options.columns.map(width);
    this.widths = new Widths(options.label, options.columns, widths);
    this.element.style.setProperty("--columns", this.widths.css);
    this.element.style.setProperty("--least", `${widths.reduce((sum, one) => sum + least(one), 0)}rem`);
    this.element.addEventListener("scroll", () => {
      this.#draw();
      this.#hint();
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("pointerleave", () => options.onPoint?.(null));
    this.element.addEventListener("blur", () => options.onPoint?.(null));
    new ResizeObserver(() => {
      this.#draw();
      this.#hint();
    }).observe(this.element);
    this.#drawHead();
  }

  /** @param {any[]} rows objects by the columns' keys */
  setRows(rows) {
    this.#rows = this.options.remote ? rows : this.#sorted(rows);
    this.#active = Math.min(this.#active, Math.max(rows.length - 1, 0));
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.#redraw();
  }

  get rows() {
    return this.#rows;
  }

  /** The row that the arrow keys are at; undefined where there is none. */
  get active() {
    return this.#rows[this.#active];
  }

  /** Mark other rows, because `isPointed` has another answer. */
  mark() {
    [...this.body.children].forEach((element, place) => {
      const row = this.#drawn[place];
      element.classList.toggle("pointed", row !== undefined && (this.options.isPointed?.(row) ?? false));
    });
  }

  /** Draw the rows again, because what is chosen changed. */
  refresh() {
    this.#redraw();
  }

  /**
   * Bring a row into view and make it the active one. The first row below the head is then whole,
   * where there is room for that: what is half below the head is hard to hit.
   * @param {number} place
   */
  reveal(place) {
    this.#active = place;
    const top = place * ROW_PX, seen = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + seen) {
      this.element.scrollTop = Math.ceil((top + ROW_PX - seen) / ROW_PX) * ROW_PX;
    }
    this.#redraw();
  }

  /** Whether there is more to the left or right than is seen. */
  #hint() {
    const { scrollLeft, clientWidth, scrollWidth, classList } = this.element;
    classList.toggle("more-left", scrollLeft > 1);
    classList.toggle("more-right", scrollLeft + clientWidth < scrollWidth - 1);
  }

  #redraw() {
    this.#first = this.#last = -1;
    this.#draw();
  }

  #draw() {
    const rows = this.#rows;
    this.space.style.height = `${Math.max(rows.length, 1) * ROW_PX}px`;
    const seen = Math.ceil((this.element.clientHeight || 600) / ROW_PX);
    const top = Math.floor(this.element.scrollTop / ROW_PX);
    const first = Math.max(0, top - MORE_ROWS);
    const last = Math.min(rows.length, top + seen + MORE_ROWS);
    if (first === this.#first && last === this.#last) return;
    this.#first = first;
    this.#last = last;
    this.body.style.transform = `translateY(${first * ROW_PX}px)`;
    if (!rows.length) {
      this.#drawn = [];
      fill(this.body, h("div", { role: "row", class: "nothing" },
        h("div", { role: "gridcell" }, this.options.nothing ?? "nothing")));
      return;
    }
    const made = [];
    for (let place = first; place < last; place++) made.push(this.#row(rows[place], place));
    const focused = this.#focused();
    this.#drawn = rows.slice(first, last);
    fill(this.body, made);
    if (this.options.isPointed) this.mark();
    this.options.onSeen?.(first, last);
    if (focused) this.#focus(focused);
    const active = this.body.querySelector(".active");
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /**
   * What in the rows has the focus: the row, and which of its controls. New elements come in place of
   * old ones whenever something changes, be it an answer that the reader did not wait for.
   */
  #focused() {
    const { activeElement } = document;
    const element = activeElement?.closest("[role=row]");
    if (!activeElement || !element || !this.body.contains(element)) return null;
    const row = this.#drawn[[...this.body.children].indexOf(element)];
    return { row, control: [...element.querySelectorAll(CONTROLS)].indexOf(activeElement) };
  }

  /** @param {{row: any, control: number}} focused */
  #focus({ row, control }) {
    const element = this.body.children[this.#drawn.indexOf(row)];
    const result = element?.querySelectorAll(CONTROLS)[control] ?? this.element;
    if (result instanceof HTMLElement) result.focus({ preventScroll: true });
  }

  /**
   * @param {any} row
   * @param {number} place
   */
  #row(row, place) {
    if (row === undefined) {
      return h("div", { role: "row", id: `${this.#id}-${place}`, "aria-rowindex": place + 2,
        class: `row coming${place === this.#active ? " active" : ""}` },
      h("div", { role: "gridcell", class: "quiet" }, "…"));
    }
    const isChosen = this.options.isChosen?.(row) ?? false;
    return h("div", {
      role: "row", id: `${this.#id}-${place}`, "aria-rowindex": place + 2,
      "aria-selected": this.options.onChoose ? String(isChosen) : null,
      class: `row${isChosen ? " chosen" : ""}${place === this.#active ? " active" : ""}`,
      onclick: () => this.#choose(place),
      onpointerenter: () => this.options.onPoint?.(row),
    }, ...this.options.columns.map((column) => cell(column, row)));
  }

  #id = `table-${++made}`;

  /** @param {number} place */
  #choose(place) {
    this.#active = place;
    if (!(place in this.#rows)) return;
    this.options.onChoose?.(this.#rows[place], place);
    this.#redraw();
  }

  #drawHead() {
    fill(this.head, ...this.options.columns.map((column) => {
      const direction = this.sort === column.key ? "ascending"
        : this.sort === `-${column.key}` ? "descending" : "none";
      const arrow = { ascending: " ↑", descending: " ↓", none: "" }[direction];
      return h("div", { role: "columnheader", "aria-sort": direction, class: align(column),
        // Else the handle's name is a part of it.
        "aria-label": column.title || column.help, title: column.help },
        column.unsorted ? column.title
          : h("button", { type: "button", class: "plain", onclick: () => this.#sortBy(column) },
            column.title, h("span", { "aria-hidden": "true" }, arrow)),
        this.widths.handle(column, () => {
          this.element.style.setProperty("--columns", this.widths.css);
          this.#hint();
        }));
    }));
  }

  /** @param {Column} column */
  #sortBy(column) {
    const isText = (column.kind ?? "text") === "text";
    const { key } = column;
    if (this.sort === key) this.sort = `-${key}`;
    else if (this.sort === `-${key}`) this.sort = key;
    else this.sort = isText ? key : `-${key}`;
    announce(`sorted by ${column.title}, ${this.sort.startsWith("-") ? "descending" : "ascending"}`);
    this.#drawHead();
    this.element.scrollTop = 0;
    if (!this.options.remote) this.setRows(this.#rows);
    this.options.onSort?.(this.sort);
  }

  /** @param {any[]} rows */
  #sorted(rows) {
    const key = this.sort.replace(/^-/, "");
    if (!key || !this.options.columns.some((column) => column.key === key)) return rows.slice();
    const sign = this.sort.startsWith("-") ? -1 : 1;
    return rows.slice().sort((one, other) => {
      const a = one[key], b = other[key];
      // What is missing comes last, whichever way.
      if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
      if (b === null || b === undefined) return -1;
      return sign * (typeof a === "string" ? compare.compare(a, String(b)) : a - b);
    });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    const last = this.#rows.length - 1;
    /** @type {Record<string, number>} */
    const places = {
      ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, PageDown: this.#active + page,
      PageUp: this.#active - page, Home: 0, End: last,
    };
    const place = places[event.key];
    if (place !== undefined) {
      this.reveal(Math.max(0, Math.min(place, last)));
      this.options.onPoint?.(this.active ?? null);
    }
    else if (event.key === "Enter" && last >= 0) this.#choose(this.#active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const compare = new Intl.Collator("en", { numeric: true });
let made = 0;

/**
 * @param {Column} column
 * @param {any} row
 */
function cell(column, row) {
  const content = column.cell ? column.cell(row) : text(column, row[column.key]);
  const title = column.kind === "bytes" && typeof row[column.key] === "number"
    ? `${count(row[column.key])} bytes` : null;
  return h("div", { role: "gridcell", class: align(column), title },
    typeof content === "string" ? elided(content) : content);
}

/**
 * @param {Column} column
 * @param {any} value
 */
function text(column, value) {
  switch (column.kind) {
    case "bytes": return bytes(value);
    case "time": return time(value);
    case "count": return count(value);
    case "percent": return percent(value);
    case "number":
      return typeof value === "number" ? Number(value.toPrecision(6)).toLocaleString("en-US") : "–";
    default: return value === null || value === undefined ? "" : elided(String(value));
  }
}

/** @param {Column} column */
function align(column) {
  return (column.kind ?? "text") === "text" ? "left" : "right";
}

/** @param {Column} column */
function width(column) {
  if (column.width) return column.width;
  return (column.kind ?? "text") === "text" ? "minmax(8rem, 1fr)" : "7.5rem";
}

/**
 * The rem that a column takes at least: what a row holds must not make it wider than the others.
 * @param {string} width
 */
function least(width) {
  return Number(/[\d.]+(?=rem)/.exec(width)?.[0] ?? LEAST_REM);
}
