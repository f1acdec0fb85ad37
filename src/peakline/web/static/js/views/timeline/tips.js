/** The tip of an event: at once what the picture says, and all about it once the pointer rests. */

import { isAbort } from "../../core/api.js";
import { bytes, percent, time, worded } from "../../core/format.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { activityOf } from "./activities.js";
import { askTimeline } from "./ask.js";
import { WORDING } from "../../core/wording.js";

const REST_MS = 180;
const MOST_KNOWN = 300;
const MOST_ARGUMENTS = 6;
const LONGEST = 90;

/** @typedef {import("./chosen.js").Details} Details */

export class Tips {
  /** @type {Map<number, Details>} */
  #known = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting;
  #shown = -1;
  #place = [0, 0];
  /** @type {AbortController | null} */
  #asking = null;

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    context.signal.addEventListener("abort", () => this.hide());
  }

  /**
   * Show an event beside a place of the window.
   * @param {number} x
   * @param {number} y
   * @param {number} event
   * @param {string[]} lines what the picture says: the name first
   */
  show(x, y, event, lines) {
    this.#place = [x, y];
    const details = this.#known.get(event);
    showTip(x, y, details ? linesOf(details) : lines);
    if (event === this.#shown) return;
    this.#leave();
    this.#shown = event;
    if (!details) this.#resting = setTimeout(() => void this.#ask(event), REST_MS);
  }

  hide() {
    this.#leave();
    hideTip();
  }

  #leave() {
    clearTimeout(this.#resting);
    this.#asking?.abort();
    this.#shown = -1;
  }

  /** @param {number} event */
  async #ask(event) {
    const ends = new AbortController();
    this.#asking = ends;
    try {
      const data = await askTimeline(this.context, { view: "event", event, with_step: "false" }, ends.signal);
      if (this.#known.size > MOST_KNOWN) this.#known.clear();
      this.#known.set(event, data["details"]);
      const [x = 0, y = 0] = this.#place;
      if (this.#shown === event) showTip(x, y, linesOf(data["details"]));
    } catch (error) {
      // The tip has what the picture says; a click tells what is wrong.
      if (!isAbort(error)) this.#resting = undefined;
    }
  }
}

/** @param {Details} event */
function linesOf(event) {
  const share = event.duration_ps > 0 ? ` (${percent(event.own_ps / event.duration_ps)})` : "";
  const some = event.stats.filter(({ value }) => value).slice(0, MOST_ARGUMENTS);
  const more = event.stats.length - some.length;
  return [
    event.name || "(no name)",
    `${time(event.duration_ps, 5)}, self ${time(event.own_ps, 5)}${share}`,
    activityOf(event.activity).text,
    ...(event.op && event.op !== event.name ? [`op: ${cut(event.op)}`] : []),
    ...(event.bytes === null ? [] : [`bytes: ${bytes(event.bytes)}`]),
    ...(event.shape ? [`shape: ${cut(event.shape)}`] : []),
    `begins at ${time(event.start_ps, 7)}`,
    ...some.map(({ name, value }) => `${name}: ${cut(value ?? "")}`),
    ...(more > 0 ? [worded(WORDING.timeline.more_arguments, { more })] : []),
  ];
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
