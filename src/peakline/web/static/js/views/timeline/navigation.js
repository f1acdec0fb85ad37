/** What is chosen and shown of the timeline: from the address, by keys, clicks and links. */

import { number } from "../../core/address.js";
import { isAbort } from "../../core/api.js";
import { announce } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { findMeant, meantBy } from "./pick.js";
import { formatRanges, parseRanges } from "./ranges.js";

const AIR = 0.5;
const STEP_AIR = 0.04;
const RANGE_AIR = 0.25;
const EDGE = 0.02;
const LEAST_PS = 1e5;

/** @typedef {import("./lanes.js").Brief} Brief */
/** @typedef {Record<string, string>} Params */

export class Navigation {
  /** @type {number | null} a moment that the address names */
  moment = null;
  /** What update() brought is not told to the address again. */
  isTelling = true;
  /** The step that the address names, while the steps are not known yet; "" for none. */
  #awaited = "";
  /** @type {Promise<void>} */
  #stepping = Promise.resolve();

  /** @param {import("./view.js").TimelineView} view */
  constructor(view) {
    this.view = view;
  }

  /** Take what an address says. @param {Params} params */
  update(params) {
    this.isTelling = false;
    const from = number(params["from"]), to = number(params["to"]);
    const event = number(params["event"]);
    if (from !== null && to !== null && to > from) this.view.viewport.show(from, to);
    else if (!params["step"] && event === null) this.view.viewport.showAll();
    const { pin = "", hide = "", order = "", only = "" } = params;
    this.view.layout.arrangement.set({ pin, hide, order, only });
    this.view.bar.setAway(this.view.layout.arrangement.away, this.view.layout.arrangement);
    this.view.layout.setFolded(params["folded"] ?? "");
    this.view.showMemory(params["memory"] !== "0", false);
    this.view.search.set(params["q"] ?? "", false);
    this.view.legend.set(params["colors"] ?? "", params["off"] ?? "");
    this.view.lanes.retheme();
    this.moment = number(params["at"]);
    const [begin = "", end = ""] = (params["range"] ?? "").split("_");
    const lanes = params["lanes"] ? parseRanges(params["lanes"], this.view.layout.lines.length) : null;
    this.setRange(number(begin), number(end), lanes);
    this.view.flags.set(params["flags"] ?? "");
    if ((params["arrows"] === "1") !== this.view.arrows.isShown) this.view.showArrows(params["arrows"] === "1", false);
    // A link that names an event means all about it, unless the reader closed that.
    this.view.panel.show(params["tab"] ?? (event === null ? "" : "event"));
    const meant = event === null ? meantBy(params) : null;
    if (meant) void this.chooseMeant(meant, from === null);
    else if (event !== this.view.chosen.id) {
      void this.chooseFromAddress(event, from === null, params["y"] === undefined);
    }
    const step = params["step"];
    if (step) void this.followFromAddress(step, from === null && event === null);
    else this.setStep(null);
    const scroll = number(params["y"]) ?? 0;
    this.view.lanes.space.style.height = `${this.view.layout.height}px`;
    this.view.lanes.element.scrollTop = scroll;
    this.isTelling = true;
    this.view.invalidate();
  }

  /**
   * @param {number | null} event
   * @param {import("./chosen.js").Named | null} brief where it is, if that is known
   */
  choose(event, brief) {
    this.view.lanes.chosen = brief;
    if (event === null) this.view.context.change({ event: null });
    else this.view.context.change({ event });
    if (event !== null) this.view.panel.show("event");
    // What the panel covers now is not where the reader chose it.
    if (brief) this.view.lanes.reveal(brief.line, brief.row, true);
    void this.view.chosen.choose(event, brief).then(() => this.view.invalidate());
    this.view.invalidate();
  }

  /** @param {Brief | null} brief */
  placed(brief) {
    this.view.lanes.chosen = brief;
    this.view.invalidate();
  }

  /**
   * Choose an event and bring it into view, moving no more than that needs.
   * @param {import("./chosen.js").Named} event
   */
  go(event) {
    const { start_ps: start, duration_ps: duration, line, row } = event;
    const { from, to, span } = this.view.viewport;
    if (start + duration < from + span * EDGE || start > to - span * EDGE) {
      this.view.viewport.show(start + duration / 2 - span / 2, start + duration / 2 + span / 2);
    }
    this.choose(event.event, event);
    this.view.lanes.reveal(line, row);
  }

  /**
   * @param {number | null} event
   * @param {boolean} bring
   * @param {boolean} reveal
   */
  async chooseFromAddress(event, bring, reveal) {
    this.view.lanes.chosen = null;
    const details = await this.view.chosen.choose(event);
    if (!details) return;
    if (this.view.layout.unfold(details.line, details.row)) this.view.folded();
    if (bring) this.zoomTo(details);
    if (bring || reveal) this.view.lanes.reveal(details.line, details.row);
    this.view.invalidate();
  }

  /**
   * Choose what a link means, and put it into the address; or say that there is none.
   * @param {import("./pick.js").Meant} meant
   * @param {boolean} bring
   */
  async chooseMeant(meant, bring) {
    this.view.panel.show("event");
    const answer = await findMeant(this.view.context, meant);
    if (!answer || this.view.context.signal.aborted) return;
    const { found: result, text } = answer;
    this.view.context.change({ find: null, pick: null, device: null });
    if (!result) {
      this.view.chosen.say(text);
      return;
    }
    this.view.lanes.reveal(result.line, result.row);
    if (bring) this.zoomTo(result);
    this.go(result);
    announce(text);
  }

  /** @param {Brief} event */
  zoomTo({ start_ps: start, duration_ps: duration, line, row }) {
    // Of what takes no time, what is around it is shown.
    const more = Math.max(0, LEAST_PS - duration) / 2;
    this.view.viewport.bring(start - more, start + duration + more, AIR);
    this.view.lanes.reveal(line, row);
  }

  zoomToRange() {
    const { from, to } = this.view.range;
    if (from !== null && to !== null) this.view.viewport.bring(from, to, RANGE_AIR);
  }

  /**
   * @param {Brief} event
   * @param {boolean} [isOwn] on its own line alone
   */
  mark({ start_ps: start, duration_ps: duration, line }, isOwn = false) {
    this.measure(start, start + Math.max(1, duration), true, isOwn ? [line] : null);
  }

  /** Set a flag at the chosen event, or where the pointer is, or in the middle. */
  flag() {
    const { details } = this.view.chosen;
    this.view.panel.show("notes");
    this.view.flags.add(details?.start_ps ?? this.actions().at(), details?.name ?? "");
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {boolean} done
   * @param {number[] | null} lines null: all
   */
  measure(from, to, done, lines) {
    if (!done) {
      this.view.range.set(from, to, lines);
      this.view.invalidate();
      return;
    }
    this.setRange(from, to, lines);
    this.view.panel.show("range");
  }

  /**
   * @param {number | null} from
   * @param {number | null} to
   * @param {number[] | null} [lines]
   */
  setRange(from, to, lines = null) {
    const { range } = this.view;
    const isNew = from !== null && to !== null && (Math.round(from) !== range.from
      || Math.round(to) !== range.to || String(lines) !== String(range.lines) || this.isTelling);
    range.set(from, to, lines);
    if (this.isTelling) {
      this.view.context.change({ range: from === null || to === null ? null
        : `${Math.round(from)}_${Math.round(to)}`, lanes: lines ? formatRanges(lines) : null });
    }
    if (isNew) void this.view.range.load();
    this.view.invalidate();
  }

  /** @param {import("./steps.js").Step | null} step */
  setStep(step) {
    this.#awaited = "";
    this.view.steps.choose(step);
    this.view.bar.setStep(step);
  }

  /** @param {import("./steps.js").Step} step */
  follow(step) {
    this.setStep(step);
    this.view.context.change({ step: this.view.steps.key(step) });
    this.view.viewport.bring(step.start_ps, step.end_ps, STEP_AIR);
    announce(`step ${step.name}, ${time(step.wall_ps)}${step.device ? ` on ${step.device}` : ""}`);
  }

  /**
   * @param {string} name or id
   * @param {string | null} [device]
   */
  async followNamed(name, device = null) {
    const step = await this.view.steps.find(name, device).catch(() => null);
    if (step) this.follow(step);
    else announce(`step ${name} is not found`);
  }

  /**
   * @param {string} key
   * @param {boolean} bring
   */
  async followFromAddress(key, bring) {
    this.#awaited = key;
    await this.view.steps.ready;
    if (this.#awaited !== key) return;
    const step = await this.view.steps.find(key).catch(() => null);
    if (!step || this.#awaited !== key || this.view.context.signal.aborted) return;
    this.setStep(step);
    if (bring) this.view.viewport.bring(step.start_ps, step.end_ps, STEP_AIR);
    if (this.view.context.params["pick"] === "step") void this.#chooseOfStep(step);
  }

  /**
   * Choose the event that is the step, where one begins and ends with it: what a link from a table of
   * steps means. Steps of which no single event is the mark stay followed.
   * @param {import("./steps.js").Step} step
   */
  async #chooseOfStep({ start_ps: at, end_ps: until }) {
    this.view.context.change({ pick: null });
    const answer = await findMeant(this.view.context,
      { search: null, at_ps: at, until_ps: until, device: null });
    if (answer?.found && this.view.chosen.id === null) this.go(answer.found);
  }

  /** Each begins where the one before led. @param {1 | -1} way */
  step(way) {
    this.#stepping = this.#stepping.then(async () => {
      const step = await this.view.steps.neighbour(way);
      if (this.view.context.signal.aborted) return;
      if (step) this.follow(step);
      else announce(this.view.steps.count ? "there is no further step" : "this profile has no steps");
    }).catch((error) => {
      if (!isAbort(error)) announce(`the step was not found: ${error}`);
    });
  }

  /** @returns {import("./keys.js").Actions} */
  actions() {
    return {
      at: () => this.view.pointer ?? (this.view.viewport.from + this.view.viewport.to) / 2,
      hasChoice: () => this.view.chosen.id !== null,
      go: (way) => {
        const { details } = this.view.chosen;
        if (!details) return;
        if (way === "child") void this.view.chosen.firstChild();
        const other = way === "parent" ? details.parents[0]
          : way === "child" ? null : details[way];
        if (other) this.go(other);
        else if (way !== "child") announce("there is none");
      },
      zoom: () => {
        if (this.view.lanes.chosen) this.zoomTo(this.view.lanes.chosen);
        else this.zoomToRange();
      },
      mark: (isOwn) => {
        if (this.view.lanes.chosen) this.mark(this.view.lanes.chosen, isOwn);
      },
      follow: (way) => {
        const next = this.view.arrows.next(way);
        if (next) this.go(next);
        else announce(way > 0 ? "no arrow begins here" : "no arrow ends here");
      },
      flag: () => this.flag(),
      search: () => {
        this.view.search.field.focus();
        this.view.search.field.select();
      },
      match: (way) => void this.view.search.go(way),
      step: (way) => this.step(way),
      clear: () => this.clear(),
      scroll: (by, pages) => {
        const { element } = this.view.lanes;
        element.scrollTop += pages ? by * (element.clientHeight - 40) : by;
      },
    };
  }

  clear() {
    if (this.view.chosen.id !== null) this.choose(null, null);
    else if (this.view.range.from !== null) this.setRange(null, null);
    else if (this.view.search.text) this.view.search.set("", true);
    else if (this.moment !== null || this.view.steps.chosen) {
      this.moment = null;
      this.setStep(null);
      this.view.context.change({ at: null, step: null });
    } else {
      this.view.panel.show("");
    }
    this.view.invalidate();
  }
}
