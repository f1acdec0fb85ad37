/** The parts of a step's time: their names and looks, and a bar that shows shares of them. */

import { h } from "./dom.js";
import { shares, time } from "./format.js";
import { WORDING } from "./wording.js";

/**
 * `color` is one of the stylesheet's; parts that share one differ by `pattern`: what a color says
 * is said by its hatching too, and by the numbers beside.
 * @typedef {{name: string, text: string, color: string, pattern: "" | "/" | "x"}} Part
 */

/** @type {readonly Part[]} in the order in which they are stacked */
export const PARTS = [
  { name: "compute", text: WORDING.parts.compute, color: "series-3", pattern: "" },
  { name: "communication", text: WORDING.parts.communication, color: "series-4", pattern: "" },
  { name: "device_to_device", text: WORDING.parts.device_to_device, color: "series-2", pattern: "x" },
  { name: "device_to_host", text: WORDING.parts.device_to_host, color: "series-2", pattern: "/" },
  { name: "host_to_device", text: WORDING.parts.host_to_device, color: "series-2", pattern: "" },
  { name: "input_wait", text: WORDING.parts.input_wait, color: "series-7", pattern: "" },
  { name: "compile", text: WORDING.parts.compile, color: "series-5", pattern: "" },
  { name: "launch", text: WORDING.parts.launch, color: "series-6", pattern: "" },
  { name: "host_compute", text: WORDING.parts.host_compute, color: "series-1", pattern: "" },
  { name: "idle", text: WORDING.parts.idle, color: "series-8", pattern: "" },
  { name: "unknown", text: WORDING.parts.unknown, color: "series-8", pattern: "/" },
];

const BY_NAME = new Map(PARTS.map((part) => [part.name, part]));

/**
 * A part by its name, also by that of its column.
 * @param {string} name
 * @returns {Part}
 */
export function partOf(name) {
  const bare = name.replace(/_ps$/, "");
  return BY_NAME.get(bare)
    ?? { name: bare, text: bare.replace(/_/g, " "), color: "series-8", pattern: "x" };
}

/**
 * A bar of parts with a legend below that has the numbers.
 * @param {{part: string, ps: number}[]} parts those that are not zero
 * @param {string} label what the whole is, such as "a mean step"
 * @param {(name: string) => Part} [lookOf] for parts of something else than a step
 * @returns {HTMLElement}
 */
export function partsBar(parts, label, lookOf = partOf) {
  const whole = parts.reduce((sum, { ps }) => sum + ps, 0);
  const some = parts.filter(({ ps }) => ps > 0);
  const texts = shares(some.map(({ ps }) => ps));
  const ordered = some.map(({ part, ps }, place) =>
    ({ look: lookOf(part), ps, share: ps / whole, text: texts[place] }));
  const description = ordered.map(({ look, text }) => `${look.text} ${text}`).join(", ");
  const bar = h("div", { class: "parts-bar", role: "img", "aria-label": `${label}: ${description}` },
    ...ordered.map(({ look, ps, share, text }) => h("div", {
      class: `part ${patternClass(look.pattern)}`,
      title: `${look.text}: ${time(ps)}, ${text}`,
      style: { flexGrow: String(share), backgroundColor: `var(--${look.color})` },
    }, share >= 0.08 && h("span", {}, text))));
  const legend = h("ul", { class: "parts-legend" }, ...ordered.map(({ look, ps, text }) =>
    h("li", {}, swatch(look), h("span", { class: "grow" }, look.text),
      h("span", { class: "number" }, time(ps)),
      h("span", { class: "number quiet" }, text))));
  return h("div", { class: "stack" }, bar, legend);
}

/**
 * The small square that names a part's color and hatching.
 * @param {Part} part
 */
export function swatch(part) {
  return h("span", { class: `swatch ${patternClass(part.pattern)}`, "aria-hidden": "true",
    style: { backgroundColor: `var(--${part.color})` } });
}

/** @param {Part["pattern"]} pattern */
function patternClass(pattern) {
  return { "": "", "/": "hatched", x: "crossed" }[pattern];
}
