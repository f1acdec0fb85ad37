/** What the colors of events mean; each is a switch that dims what it stands for. */

import { fill, h } from "../../core/dom.js";
import { activityColor, activityOf } from "./activities.js";
import { nameShades, shadesOf } from "./colors.js";

/** @typedef {import("./activities.js").Activity} Activity */
/** @typedef {{mode: string, off: string}} LegendState of the address */

export class Legend {
  /** 1 for the activities that are dimmed. */
  off = new Uint8Array(0);
  /** @type {"activity" | "name"} */
  mode = "activity";
  #shown = "";

  /**
   * @param {string[]} names the words for activities, by their numbers
   * @param {(state: LegendState) => void} changed by the reader
   */
  constructor(names, changed) {
    this.activities = names.map(activityOf);
    this.changed = changed;
    this.off = new Uint8Array(names.length);
    this.list = h("ul", { "aria-label": "What the colors mean" });
    this.by = h("select", { "aria-label": "Color by", onchange: () => {
      this.mode = this.by.value === "name" ? "name" : "activity";
      this.#notify();
    } }, h("option", { value: "activity" }, "Color by activity"),
    h("option", { value: "name" }, "Color by name"));
    this.element = h("div", { class: "tl-legend" }, this.by, this.list);
  }

  /**
   * Take what an address says.
   * @param {string} mode
   * @param {string} off names of activities, with commas
   */
  set(mode, off) {
    this.mode = mode === "name" ? "name" : "activity";
    this.by.value = this.mode;
    const names = new Set(off.split(","));
    this.activities.forEach(({ name }, number) => void (this.off[number] = names.has(name) ? 1 : 0));
    this.#shown = "";
  }

  /** The pixels of the colors. @param {string} ground */
  shades(ground) {
    return this.mode === "name" ? nameShades(ground) : shadesOf(this.activities.map(activityColor), ground);
  }

  /**
   * Show the activities that occur.
   * @param {Set<number>} present
   */
  draw(present) {
    const numbers = this.activities.map((_, number) => number)
      .filter((number) => present.has(number) || this.off[number]);
    const key = `${this.mode} ${numbers} ${this.off}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const focused = document.activeElement?.id ?? "";
    fill(this.list, numbers.map((number) => h("li", {}, this.#button(number))));
    if (focused.startsWith("tl-activity-")) document.getElementById(focused)?.focus();
  }

  /** The colors of the theme have changed. */
  retheme() {
    this.#shown = "";
  }

  /** @param {number} number */
  #button(number) {
    const activity = /** @type {Activity} */ (this.activities[number]);
    const isOff = this.off[number] === 1;
    return h("button", { type: "button", class: "plain", id: `tl-activity-${number}`,
      "aria-pressed": String(!isOff), title: isOff ? "shown dim; a click shows it in full" : "a click dims it",
      onclick: () => {
        this.off[number] = isOff ? 0 : 1;
        this.#notify();
      } },
    this.mode === "activity" && h("span", { class: "swatch", "aria-hidden": "true",
      style: { backgroundColor: activityColor(activity) } }), activity.text);
  }

  #notify() {
    this.#shown = "";
    this.changed({ mode: this.mode === "name" ? "name" : "",
      off: this.activities.filter((_, number) => this.off[number]).map(({ name }) => name).join(",") });
  }
}
