/** What stands above the timeline: the search, the followed step, what is shown, buttons. */

import { h } from "../../core/dom.js";
import { counted, time } from "../../core/format.js";

const DIGITS = 6;
const MOST_DIGITS = 16;

/**
 * @typedef {object} BarOptions
 * @property {HTMLElement} search
 * @property {number} emptyLines lines without events
 * @property {number} untimed events without a time
 * @property {(way: 1 | -1) => void} step
 * @property {(isShown: boolean) => void} memory
 * @property {() => void} whole
 */

export class Bar {
  /** @param {BarOptions} options */
  constructor({ search, emptyLines, untimed, step, memory, whole }) {
    const stepButton = (/** @type {1 | -1} */ way) => h("button", {
      type: "button", class: "plain", title: way > 0 ? "next step ( ] )" : "previous step ( [ )",
      "aria-label": way > 0 ? "next step" : "previous step", onclick: () => step(way),
    }, way > 0 ? "›" : "‹");
    this.memory = h("button", { type: "button", "aria-pressed": "true",
      onclick: () => memory(this.memory.getAttribute("aria-pressed") !== "true") }, "Memory");
    this.where = h("span", { class: "quiet tl-where" });
    this.stepName = h("span", { class: "quiet" }, "Step");
    this.stepper = h("div", { class: "row-of tl-stepper", hidden: true },
      stepButton(-1), this.stepName, stepButton(1));
    const left = [emptyLines && `${counted(emptyLines, "line")} without events left out`,
      untimed && `${counted(untimed, "event")} without a time not drawn`].filter(Boolean).join("; ");
    this.element = h("div", { class: "tl-bar" }, search, this.stepper, this.memory,
      h("button", { type: "button", title: "0", onclick: whole }, "Whole"),
      this.where, left && h("span", { class: "quiet" }, left));
  }

  /** @param {boolean} isShown */
  setMemory(isShown) {
    this.memory.setAttribute("aria-pressed", String(isShown));
  }

  /** @param {import("./steps.js").Step | null} step the one that is followed */
  setStep(step) {
    this.stepName.textContent = step ? `${step.name} (${time(step.wall_ps)})` : "Step";
  }

  /** Say what is shown, with as many digits as tell its ends apart. @param {number} from @param {number} to */
  setWhere(from, to) {
    const needed = 3 + Math.ceil(Math.log10(Math.max(Math.abs(to), 1) / (to - from)));
    const digits = Math.min(MOST_DIGITS, Math.max(DIGITS, needed));
    this.where.textContent = `${time(from, digits)} – ${time(to, digits)} (${time(to - from)})`;
  }
}
