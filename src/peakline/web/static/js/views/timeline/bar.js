/** What stands above the timeline: the search, the followed step, what is shown, buttons. */

import { h } from "../../core/dom.js";
import { counted, time, worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

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
 * @property {(factor: number) => void} zoom
 * @property {(text: string) => void} filter of lines
 * @property {() => void} all shows all lines
 * @property {(isShown: boolean) => void} arrows
 * @property {() => void} flag
 * @property {import("./hosts.js").Hosts | null} hosts null: there is one
 * @property {boolean} isStacked whether all hosts are shown
 */

export class Bar {
  /** @param {BarOptions} options */
  constructor({ search, emptyLines, untimed, step, memory, whole, zoom, filter, all, arrows, flag, hosts, isStacked }) {
    const stepButton = (/** @type {1 | -1} */ way) => h("button", {
      type: "button", class: "plain", title: way > 0 ? "next step ( ] )" : "previous step ( [ )",
      "aria-label": way > 0 ? "next step" : "previous step", onclick: () => step(way),
    }, way > 0 ? "›" : "‹");
    this.memory = h("button", { type: "button", "aria-pressed": "true",
      onclick: () => memory(this.memory.getAttribute("aria-pressed") !== "true") }, "Memory");
    const toggle = (/** @type {string} */ text, /** @type {string} */ title, /** @type {(is: boolean) => void} */ act) => {
      const button = h("button", { type: "button", "aria-pressed": "false", title, onclick: () => {
        const is = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(is));
        act(is);
      } }, text);
      return button;
    };
    this.arrows = toggle("Arrows", "of all events in view, where they are few", arrows);
    this.arrowNote = h("span", { class: "quiet", hidden: true });
    this.select = toggle("Select", "dragging selects an area, as with Shift", (is) => void (this.isSelecting = is));
    this.isSelecting = false;
    const every = hosts && toggle("All hosts", "the lanes of all hosts, on one clock", (is) => hosts.all(is));
    const some = hosts && h("button", { type: "button", "aria-haspopup": "dialog",
      title: "the lanes of chosen hosts, on one clock", onclick: () => void hosts.choose() }, "Choose hosts");
    every?.setAttribute("aria-pressed", String(isStacked));
    this.where = h("span", { class: "quiet tl-where" });
    this.stepName = h("span", { class: "quiet" }, "Step");
    this.stepper = h("div", { class: "row-of tl-stepper", hidden: true },
      stepButton(-1), this.stepName, stepButton(1));
    this.only = h("input", { type: "text", class: "tl-only", placeholder: "Filter lines", spellcheck: "false",
      "aria-label": "Show only lines whose name matches", title: "text, * for anything, /expression/, | for or, - for not",
      oninput: () => filter(this.only.value.trim()) });
    this.problem = h("span", { class: "bad", role: "status", hidden: true });
    this.away = h("button", { type: "button", class: "plain", hidden: true, onclick: all });
    const left = [emptyLines && worded(WORDING.timeline.empty_lines, { lines: counted(emptyLines, "line") }),
      untimed && worded(WORDING.timeline.not_drawn, { events: counted(untimed, "event") })].filter(Boolean).join("; ");
    this.element = h("div", { class: "tl-bar" }, search, this.stepper, every, some, this.memory, this.arrows,
      this.select, h("button", { type: "button", title: "b", onclick: flag }, "Flag"),
      h("div", { class: "row-of tl-zoom" },
        h("button", { type: "button", title: "w", "aria-label": "Zoom in", onclick: () => zoom(0.5) }, "+"),
        h("button", { type: "button", title: "s", "aria-label": "Zoom out", onclick: () => zoom(2) }, "−"),
        h("button", { type: "button", title: "0", onclick: whole }, "Whole")),
      this.only, this.problem, this.away, this.arrowNote,
      this.where, left && h("span", { class: "quiet" }, left));
  }

  /** @param {boolean} isShown */
  setMemory(isShown) {
    this.memory.setAttribute("aria-pressed", String(isShown));
  }

  /**
   * @param {boolean} isShown
   * @param {string} note
   */
  setArrows(isShown, note) {
    const pressed = String(isShown);
    if (this.arrows.getAttribute("aria-pressed") !== pressed) this.arrows.setAttribute("aria-pressed", pressed);
    if (this.arrowNote.textContent !== note) this.arrowNote.textContent = note;
    this.arrowNote.hidden = !isShown || !note;
  }

  /**
   * Say how many lines are not shown.
   * @param {number} count
   * @param {{only: string, problem: string}} filter
   */
  setAway(count, { only, problem }) {
    this.problem.hidden = !problem;
    if (this.problem.textContent !== problem) this.problem.textContent = problem;
    this.only.setAttribute("aria-invalid", String(problem !== ""));
    if (document.activeElement !== this.only) this.only.value = only;
    this.away.hidden = !count;
    this.away.textContent = `${counted(count, "line")} hidden: show all`;
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
