/** From one step to another by the parts of their time: bars that begin where the one above ends. */

import { fill, h, svg } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { partOf } from "../../core/parts.js";

const ROW_PX = 26, BAR_PX = 16, VALUE_PX = 96, LABEL_PX = 190, LEAST_PX = 1.5;

/** @typedef {import("./why.js").Difference} Difference */

export class Waterfall {
  /** @type {Difference | null} */
  #shown = null;
  #part = "";
  #width = 0;

  /** @param {(part: string) => void} choose a part, or "" for all */
  constructor(choose) {
    this.choose = choose;
    this.picture = svg("svg", { class: "waterfall", role: "group",
      "aria-label": "From the step compared with to this one, by part" });
    this.element = h("div", { class: "canvas-box" }, this.picture);
    this.observer = new ResizeObserver(() => {
      if (this.element.clientWidth !== this.#width) this.#draw();
    });
    this.observer.observe(this.element);
  }

  /**
   * @param {Difference} difference
   * @param {string} part that is chosen; "" for all
   */
  show(difference, part) {
    this.#shown = difference;
    this.#part = part;
    this.#draw();
  }

  destroy() {
    this.observer.disconnect();
  }

  #draw() {
    const shown = this.#shown, width = this.element.clientWidth;
    this.#width = width;
    if (!shown || !width) return;
    const parts = shown.parts.filter((part) => part.difference_ps);
    parts.sort((one, other) => Math.abs(other.difference_ps) - Math.abs(one.difference_ps));
    let at = shown.usual_wall_ps;
    const steps = parts.map((part) => {
      const from = at;
      at += part.difference_ps;
      return { part, from: Math.min(from, at), to: Math.max(from, at) };
    });
    const most = Math.max(1, shown.wall_ps, shown.usual_wall_ps, ...steps.map(({ to }) => to));
    const left = Math.min(LABEL_PX, width * 0.4);
    const scale = Math.max(width - left - VALUE_PX, 10) / most;
    const rows = [
      this.#total(nameOf(shown.against, shown), shown.usual_wall_ps, 0, left, scale),
      ...steps.map((one, place) => this.#part_(one, place + 1, left, scale)),
      this.#total(nameOf(shown.step, shown), shown.wall_ps, steps.length + 1, left, scale),
    ];
    const tall = rows.length * ROW_PX;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    this.picture.setAttribute("width", String(width));
    this.picture.setAttribute("height", String(tall));
    const links = steps.map(({ part, from, to }, place) => {
      const x = left + (part.difference_ps > 0 ? to : from) * scale;
      return svg("line", { class: "join", x1: x, x2: x, y1: (place + 1) * ROW_PX + 21,
        y2: (place + 2) * ROW_PX + 5 });
    });
    const held = document.activeElement?.getAttribute("data-part");
    fill(this.picture, ...links, ...rows);
    // Who moves through the parts by keys stays where they are.
    if (held) {
      /** @type {SVGElement | null} */ (this.picture.querySelector(`[data-part="${held}"]`))?.focus();
    }
  }

  /**
   * @param {string} label
   * @param {number} ps
   * @param {number} row
   * @param {number} left
   * @param {number} scale
   */
  #total(label, ps, row, left, scale) {
    return svg("g", { role: "img", "aria-label": `${label}: ${time(ps)}` },
      text(left - 8, row, cut(label, left), "end"),
      svg("rect", { class: "total", x: left, y: row * ROW_PX + 5, height: BAR_PX,
        width: Math.max(ps * scale, LEAST_PX) }),
      text(left + ps * scale + 6, row, time(ps), "start"));
  }

  /**
   * @param {{part: import("./why.js").PartDifference, from: number, to: number}} one
   * @param {number} row
   * @param {number} left
   * @param {number} scale
   */
  #part_({ part, from, to }, row, left, scale) {
    const look = partOf(part.part), value = signed(part.difference_ps);
    const isChosen = part.part === this.#part;
    const group = svg("g", { role: "button", tabindex: 0, class: isChosen ? "part chosen" : "part",
      "aria-pressed": String(isChosen), "data-part": part.part,
      "aria-label": `${look.text}: ${value}; ${time(part.ps)} instead of ${time(part.usual_ps)}` },
    svg("title", {}, `${look.text}: ${time(part.ps)} instead of ${time(part.usual_ps)}`),
    svg("rect", { class: "ground", x: 0, y: row * ROW_PX + 1, width: "100%", height: ROW_PX - 2 }),
    text(left - 8, row, cut(look.text, left), "end"),
    svg("rect", { x: left + from * scale, y: row * ROW_PX + 5, height: BAR_PX,
      width: Math.max((to - from) * scale, LEAST_PX), style: { fill: `var(--${look.color})` } }),
    text(left + to * scale + 6, row, value, "start"));
    const choose = () => this.choose(isChosen ? "" : part.part);
    group.addEventListener("click", choose);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    return group;
  }
}

/**
 * @param {number} x
 * @param {number} row
 * @param {string} content
 * @param {string} anchor
 */
function text(x, row, content, anchor) {
  return svg("text", { x, y: row * ROW_PX + 17, "text-anchor": anchor }, content);
}

/**
 * @param {string} label
 * @param {number} width
 */
function cut(label, width) {
  const most = Math.max(Math.floor((width - 8) / 7.6), 6);
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/**
 * What a person calls one side of a comparison.
 * @param {import("./why.js").Side} side
 * @param {Difference} difference
 */
export function nameOf(side, difference) {
  const name = side.name || `step ${side.step_id}`;
  if (side.steps > 1) return `mean of ${side.steps} steps`;
  return side === difference.against && side.is_median ? `median: ${name}` : name;
}

/**
 * A time with its sign.
 * @param {number} ps
 */
export function signed(ps) {
  return `${ps > 0 ? "+" : ps < 0 ? "−" : ""}${time(Math.abs(ps))}`;
}
