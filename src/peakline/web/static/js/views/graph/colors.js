/** What the colors of items mean, and the legend that says it. */

import { categoryColor, REST } from "../../core/colors.js";
import { fill, h } from "../../core/dom.js";
import { bytes, count, time } from "../../core/format.js";
import { palette } from "../../core/theme.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./picture.js").Item} Item */
/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./state.js").Mode} Mode */

const LEAST = 0.04, MOST = 0.5, TINT = 0.16;

/**
 * Which modes a picture has numbers for.
 * @param {Picture} picture
 * @returns {Mode[]}
 */
export function modesOf(picture) {
  /** @type {Mode[]} */
  const result = ["category"];
  if (picture.has_time) result.push("time");
  if (picture.has_memory) result.push("memory");
  if (picture.devices.length) result.push("device");
  return result;
}

export class Colors {
  /**
   * @param {Picture} picture
   * @param {Mode} mode
   */
  constructor(picture, mode) {
    this.picture = picture;
    this.mode = mode;
    const closed = picture.items.filter((item) => !item.is_open);
    this.most = Math.max(1, ...closed.map((item) => this.#value(item)));
  }

  /**
   * The color of an item and how strong it is; null for none.
   * @param {Item} item
   * @returns {{color: string, opacity: number} | null}
   */
  of(item) {
    if (this.mode === "time" || this.mode === "memory") {
      const value = this.#value(item);
      if (!value || item.is_open) return null;
      return { color: palette()[this.#heat()] ?? "",
        opacity: LEAST + (MOST - LEAST) * Math.sqrt(value / this.most) };
    }
    const [[most] = [""]] = this.mode === "device" ? item.devices : item.categories;
    if (item.is_open || !most) return null;
    return { color: this.color(most), opacity: TINT };
  }

  /**
   * What a closed item holds, for a strip of colors: of categories and devices only.
   * @param {Item} item
   * @returns {{color: string, share: number}[]}
   */
  mix(item) {
    if (this.mode === "time" || this.mode === "memory") return [];
    const parts = this.mode === "device" ? item.devices : item.categories;
    const known = parts.map(([text, nodes]) => ({ color: this.color(text), share: nodes / item.nodes }));
    const rest = 1 - known.reduce((sum, { share }) => sum + share, 0);
    if (rest > 0.001) known.push({ color: palette()[REST] ?? "", share: rest });
    return known;
  }

  /** @param {string} text of a category or a device */
  color(text) {
    const { devices, categories } = this.picture;
    const place = (this.mode === "device" ? devices : categories).indexOf(text);
    return place < 0 ? palette()[REST] ?? "" : categoryColor(place);
  }

  /** @param {HTMLElement} element */
  drawLegend(element) {
    if (this.mode === "time" || this.mode === "memory") {
      const text = this.mode === "time" ? time(this.most) : bytes(this.most);
      const heat = palette()[this.#heat()] ?? "";
      const steps = [0, 0.25, 0.5, 0.75, 1].map((share) =>
        h("span", { class: "gv-swatch", style: { background: heat,
          opacity: String((LEAST + (MOST - LEAST) * Math.sqrt(share)) * 1.6) } }));
      fill(element, h("span", {}, this.mode === "time" ? this.#times() : `${WORDING.graph.at_peak}:`), " 0 ",
        h("span", { class: "gv-scale", "aria-hidden": "true" }, ...steps), ` ${text}`);
      return;
    }
    const { devices, categories, items } = this.picture;
    const names = this.mode === "device" ? devices : categories;
    const shown = new Set(items.flatMap((item) => (item.is_open ? [] : this.mode === "device"
      ? item.devices : item.categories).map(([text]) => text)));
    const listed = names.filter((name) => shown.has(name));
    const others = [...shown].filter((name) => name && !names.includes(name)).length;
    fill(element, ...listed.map((name) => swatch(this.color(name), name)),
      others > 0 && swatch(palette()[REST] ?? "", others === 1 ? "1 other" : `${count(others)} others`));
  }

  #times() {
    const { step, kind } = this.picture;
    return kind === "hlo" ? `${WORDING.graph.runs_time}:` : `Time in ${step ?? "the step"}:`;
  }

  #heat() {
    return this.mode === "time" ? "series-2" : "series-4";
  }

  /** @param {Item} item */
  #value(item) {
    return this.mode === "time" ? item.time_ps : this.mode === "memory" ? item.peak_bytes : 0;
  }
}

/** @param {string} color @param {string} text */
function swatch(color, text) {
  return h("span", { class: "gv-key" },
    h("span", { class: "gv-swatch", "aria-hidden": "true", style: { background: color } }), text);
}
