/** A chart of numbers against numbers or names: bars, a line or points, as SVG. */

import { h, svg } from "./dom.js";
import { ticks } from "./ticks.js";
import { hideTip, showTip } from "./tooltip.js";

const TOP_PX = 12;
const BOTTOM_PX = 44;
const CHAR_PX = 6.6;
const ROW_PX = 22;
const TICK_PX = 90;
const NAME_PX = 16;
const POINT_PX = 3;

/**
 * @typedef {object} Axis
 * @property {string} title
 * @property {(number | null)[]} values
 * @property {(value: number) => string} text
 * @property {boolean} [isBytes]
 */
/**
 * @typedef {object} Chart
 * @property {"bar" | "line" | "scatter"} kind
 * @property {Axis} up
 * @property {Axis | null} across null: one place for each of `names`
 * @property {string[]} names of the places; what a tip says
 * @property {boolean} lies bars that lie, with the names beside them
 * @property {string} label for those who do not see it
 */

/** Draws a chart as wide as its element, again whenever that changes. */
export class XyChart {
  /** @type {Chart | null} */
  #chart = null;

  /** @param {number} height of charts that do not lie, px */
  constructor(height) {
    this.height = height;
    this.element = h("div", { class: "xy" });
    this.observer = new ResizeObserver(() => this.#draw());
    this.observer.observe(this.element);
  }

  /** The picture that is drawn. */
  get picture() {
    return this.element.querySelector("svg");
  }

  /** @param {Chart} chart */
  show(chart) {
    this.#chart = chart;
    this.#draw();
  }

  destroy() {
    this.observer.disconnect();
    hideTip();
  }

  #draw() {
    const chart = this.#chart, width = this.element.clientWidth;
    if (!chart || !width) return;
    const picture = chart.lies ? lying(chart, width) : standing(chart, width, this.height);
    this.element.replaceChildren(picture);
  }
}

/**
 * Bars that lie, one below the other.
 * @param {Chart} chart
 * @param {number} width
 */
function lying({ up, names, label }, width) {
  const longest = names.reduce((most, name) => Math.max(most, name.length), 0);
  const left = Math.min(longest * CHAR_PX + 12, width * 0.45), right = 16;
  const height = TOP_PX + ROW_PX * names.length + BOTTOM_PX, foot = height - BOTTOM_PX;
  const [low, high] = span(up.values);
  const x = (/** @type {number} */ value) => left + ((value - low) / (high - low)) * (width - left - right);
  const picture = sheet(width, height, label);
  for (const value of ticks(low, high, (width - left - right) / TICK_PX, up.isBytes)) {
    picture.append(
      svg("line", { class: "grid", x1: x(value), x2: x(value), y1: TOP_PX, y2: foot }),
      svg("text", { class: "tick", x: x(value), y: foot + 16, "text-anchor": "middle" }, up.text(value)));
  }
  picture.append(svg("text", { class: "title", x: (left + width - right) / 2, y: height - 6,
    "text-anchor": "middle" }, up.title));
  const most = Math.floor((left - 12) / CHAR_PX);
  names.forEach((name, place) => {
    const value = up.values[place], y = TOP_PX + ROW_PX * place;
    const bar = svg("g", {},
      svg("rect", { class: "hit", x: 0, y, width, height: ROW_PX }),
      svg("text", { class: "name", x: left - 6, y: y + ROW_PX / 2, "text-anchor": "end",
        "dominant-baseline": "central" },
      name.length > most ? `…${name.slice(name.length - most + 1)}` : name),
      value !== null && value !== undefined && svg("rect", { class: "bar", y: y + 3,
        x: Math.min(x(0), x(value)), width: Math.max(Math.abs(x(value) - x(0)), 1), height: ROW_PX - 6 }));
    tipped(bar, [name, value === null || value === undefined ? "–" : up.text(value)]);
    picture.append(bar);
  });
  return picture;
}

/**
 * @param {Chart} chart
 * @param {number} width
 * @param {number} height
 */
function standing(chart, width, height) {
  const { kind, up, across, names, label } = chart;
  const [low, high] = span(up.values);
  const marks = ticks(low, high, 6, up.isBytes).map((value) => ({ value, text: up.text(value) }));
  const left = Math.max(...marks.map(({ text }) => text.length * CHAR_PX), 20) + 14, right = 16;
  const foot = height - BOTTOM_PX;
  const y = (/** @type {number} */ value) => foot - ((value - low) / (high - low)) * (foot - TOP_PX);
  const places = across ? across.values : names.map((_, place) => place);
  const [first, last] = across ? extent(across.values) : [-0.5, names.length - 0.5];
  const wide = width - left - right;
  const x = (/** @type {number} */ value) => left + ((value - first) / Math.max(last - first, 1e-300)) * wide;
  const picture = sheet(width, height, label);
  for (const { value, text } of marks) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: left - 6, y: y(value), "text-anchor": "end",
        "dominant-baseline": "central" }, text));
  }
  picture.append(svg("text", { class: "title", x: left, y: TOP_PX - 2 }, up.title),
    ...(across ? acrossMarks(across, x, first, last, wide, foot) : nameMarks(names, x, wide, foot)));
  if (across) {
    picture.append(svg("text", { class: "title", x: left + wide / 2, y: height - 6,
      "text-anchor": "middle" }, across.title));
  }
  const bar = Math.max(1, (wide / Math.max(places.length, 1)) * 0.7);
  /** @type {string[]} */
  const drawn = [];
  let isAfter = false;
  places.forEach((at, place) => {
    const value = up.values[place];
    if (at === null || at === undefined || value === null || value === undefined) {
      isAfter = false;
      return;
    }
    const px = x(at), py = y(value);
    if (kind === "bar") drawn.push(`M${px - bar / 2} ${y(0)}V${py}h${bar}V${y(0)}z`);
    else if (kind === "line") drawn.push(`${isAfter ? "L" : "M"}${px} ${py}`);
    else drawn.push(`M${px - POINT_PX} ${py}a${POINT_PX} ${POINT_PX} 0 1 0 ${2 * POINT_PX} 0`
      + `a${POINT_PX} ${POINT_PX} 0 1 0 ${-2 * POINT_PX} 0`);
    isAfter = true;
  });
  picture.append(svg("path", { class: kind, d: drawn.join("") }));
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const near = nearest(places, up.values, x, y, px, kind === "scatter" ? py : null);
    if (near < 0) hideTip();
    else showTip(event.clientX, event.clientY, [names[near] ?? "", up.text(up.values[near] ?? 0)]);
  });
  picture.addEventListener("pointerleave", hideTip);
  return picture;
}

/**
 * @param {Axis} across
 * @param {(value: number) => number} x
 * @param {number} first
 * @param {number} last
 * @param {number} wide
 * @param {number} foot
 */
function acrossMarks({ text, isBytes = false }, x, first, last, wide, foot) {
  return ticks(first, last, wide / TICK_PX, isBytes).map((value) => svg("text", { class: "tick",
    x: x(value), y: foot + 16, "text-anchor": "middle" }, text(value)));
}

/**
 * As many names as are legible.
 * @param {string[]} names
 * @param {(value: number) => number} x
 * @param {number} wide
 * @param {number} foot
 */
function nameMarks(names, x, wide, foot) {
  const longest = names.reduce((most, name) => Math.max(most, name.length), 1);
  const each = Math.min(longest * CHAR_PX + NAME_PX, TICK_PX * 1.5);
  const every = Math.max(1, Math.ceil((names.length * each) / wide));
  const most = Math.floor(each / CHAR_PX);
  return names.flatMap((name, place) => (place % every ? [] : [svg("text", { class: "tick", x: x(place),
    y: foot + 16, "text-anchor": "middle" }, name.length > most ? `${name.slice(0, most - 1)}…` : name)]));
}

/**
 * The place that is nearest to a pixel.
 * @param {(number | null)[]} places
 * @param {(number | null)[]} values
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} px
 * @param {number | null} py null: only across counts
 */
function nearest(places, values, x, y, px, py) {
  let result = -1, least = 40;
  places.forEach((at, place) => {
    const value = values[place];
    if (at === null || value === null || value === undefined) return;
    const away = Math.hypot(x(at) - px, py === null ? 0 : y(value) - py);
    if (away < least) [result, least] = [place, away];
  });
  return result;
}

/**
 * @param {number} width
 * @param {number} height
 * @param {string} label
 */
function sheet(width, height, label) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

/**
 * @param {SVGElement} element
 * @param {string[]} lines
 */
function tipped(element, lines) {
  element.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, lines));
  element.addEventListener("pointerleave", hideTip);
}

/**
 * From the least to the most, with zero.
 * @param {(number | null)[]} values
 * @returns {[number, number]}
 */
function span(values) {
  const [least, most] = extent(values);
  const low = Math.min(least, 0), high = Math.max(most, 0);
  return high > low ? [low, high] : [low, low + 1];
}

/**
 * @param {(number | null)[]} values
 * @returns {[number, number]}
 */
function extent(values) {
  let least = Infinity, most = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (least > most) return [0, 1];
  return least < most ? [least, most] : [least - 0.5, most + 0.5];
}
