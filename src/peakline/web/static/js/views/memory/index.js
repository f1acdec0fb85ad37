/** The memory view: use over time, what is live at any moment, and what stands out. */

import { isAbort } from "../../core/api.js";
import { announce, fill, h } from "../../core/dom.js";
import { failed, loading, notices } from "../../core/states.js";
import { Addresses } from "./addresses.js";
import { Between } from "./between.js";
import { Counters } from "./counters.js";
import { Findings } from "./findings.js";
import { Lifetimes } from "./lifetimes.js";
import { Live } from "./live.js";
import { Model } from "./model.js";
import { nothing } from "./nothing.js";
import { Picture } from "./picture.js";
import { Programs } from "./programs.js";
import { readState, toParams } from "./state.js";
import { Steps } from "./steps.js";
import { worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../shell/context.js").Context} Context */
/** @typedef {import("./state.js").State} State */

/** @type {[string, string][]} */
const HELP = [
  ["Click", "what is live at the highest moment under the pointer"],
  ["Wheel, W S, + −", "zoom where the pointer is"],
  ["Drag, A D, ← →", "move; with Shift three times as far"],
  ["0", "show the whole profile"],
  ["p", "look at the peak"],
  ["[ ]", "look at the previous or the next step, where it holds most"],
  [", .", "look a pixel earlier or later"], ["Home End", "look at the first or the last record"],
  ["f", "fit the height to what is in view"],
  ["Shift and drag, m", "measure from A to B: m marks A, then B, at the moment looked at"],
  ["1 2 3", "draw a line, layers, or each buffer"],
  ["Esc", "leave the range"], ["/", "search what is live"],
];

/** @type {Record<string, State["draw"]>} */
const DRAWN_BY_KEY = { 1: "line", 2: "stack", 3: "buffers" };

/** @param {Context} context */
export function mount(context) {
  const view = new MemoryView(context);
  void view.open();
  return { update: (/** @type {Record<string, string>} */ params) => view.update(params),
    destroy: () => view.destroy(), help: HELP };
}

class MemoryView {
  /** @type {Model | null} */
  #model = null;
  /** @type {(() => void)[]} */
  #ends = [];
  /** @type {{picture: Picture, live: Live, between: Between, addresses: Addresses, lifetimes: Lifetimes, findings: Findings} | null} */
  #parts = null;
  /** Whether the viewport changes because the address did. */
  #isFollowing = false;
  /** Where A is, while B is not marked yet. @type {number | null} */
  #begin = null;
  /** Moments that were asked for: the last one counts, whichever answer comes first. */
  #turn = 0;
  /** @type {Map<string, {warnings: any[], notes: string[]}>} */
  #answers = new Map();
  /** The tables that the profile has. @type {string[]} */
  #tables = [];
  /** Compiled programs, where it has them. @type {Programs | null} */
  #programs = null;
  /** What the address says of a profile that has nothing else about memory. @type {State | null} */
  #alone = null;

  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** What the address says. */
    this.params = context.params;
    this.remarks = h("div");
    this.body = h("div", { class: "memory-body" });
    this.onKey = (/** @type {KeyboardEvent} */ event) => {
      this.#parts?.picture.chart?.key(event);
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      this.#parts?.live.focusSearch();
    };
    document.addEventListener("keydown", this.onKey);
  }

  async open() {
    const { context } = this;
    fill(context.main, loading("Reading the memory records"));
    try {
      const { data, ...answer } = await context.tool("live_memory", { limit: 0 });
      this.#tables = (await context.resource(["tables"])).data;
      if (!data.allocators.length) {
        if (!this.#openPrograms()) fill(context.main, this.#title(), nothing(answer));
        return;
      }
      const counters = new Counters(context);
      const model = new Model(counters, data, readState(this.params),
        () => this.#parts?.picture.overview?.redraw());
      if (!model.isMoment) await counters.open();
      if (context.signal.aborted) return;
      // The address may have changed meanwhile.
      model.state = readState(this.params);
      this.#model = model;
      this.#build(model);
      this.#notify("live", answer);
    } catch (error) {
      if (isAbort(error) || context.signal.aborted) return;
      fill(context.main, failed(error, () => void this.open()));
    }
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey);
    for (const end of this.#ends) end();
    this.#programs?.destroy();
  }

  #title() {
    return h("h1", { class: "unseen" }, `Memory of ${this.context.session}`);
  }

  /** Show what is known of a profile without records; whether there is anything. */
  #openPrograms() {
    if (!this.#tables.includes("hlo_modules")) return false;
    this.#alone = readState(this.params);
    this.#programs = new Programs(this.context, () => this.#alone ?? readState({}), (changes) => {
      this.#alone = { ...(this.#alone ?? readState({})), ...changes };
      this.context.change(toParams(changes), true);
      void this.#programs?.show();
    }, true);
    fill(this.context.main, this.#title(), h("p", { class: "quiet" }, WORDING.programs.alone), this.#programs.element);
    void this.#programs.show();
    return true;
  }

  /** @param {Record<string, string>} params */
  update(params) {
    this.params = params;
    const model = this.#model;
    if (this.#alone) {
      this.#alone = readState(params);
      void this.#programs?.show();
    }
    if (!model) return;
    this.#turn += 1;
    this.#parts?.live.forget();
    const before = model.state;
    model.state = readState(params);
    this.#moveTo(model.state);
    this.#show(before);
  }

  /**
   * Change what is shown, and the address.
   * @param {Partial<State>} changes
   * @param {boolean} [push] so that Back undoes it
   */
  #change(changes, push = false) {
    const model = this.#model;
    if (!model) return;
    const before = model.state;
    if (changes.at !== undefined) this.#turn += 1;
    // The chosen buffer is one of an allocator.
    if (changes.allocator !== undefined && changes.allocator !== model.allocator?.name
        && changes.buffer === undefined) changes = { ...changes, buffer: null };
    model.state = { ...before, ...changes };
    this.context.change(toParams(changes), push);
    if (changes.from !== undefined) this.#moveTo(model.state);
    this.#show(before);
  }

  /** @param {State} state */
  #moveTo({ from, to }) {
    const { viewport } = /** @type {Model} */ (this.#model);
    this.#isFollowing = true;
    from === null || to === null ? viewport.showAll() : viewport.show(from, to);
    this.#isFollowing = false;
  }

  /**
   * Draw what a change of state changes.
   * @param {State} before
   */
  #show(before) {
    const model = this.#model, parts = this.#parts;
    if (!model || !parts) return;
    const { state } = model;
    const names = /** @type {const} */ (["at", "allocator", "group", "q", "sort", "tree"]);
    const isSame = names.every((name) => state[name] === before[name])
      && JSON.stringify(state.only) === JSON.stringify(before.only);
    parts.picture.redraw();
    parts.addresses.show();
    void parts.lifetimes.show();
    void this.#programs?.show();
    this.#showRange();
    if (!isSame) parts.live.show();
    else if (state.buffer !== before.buffer) void parts.live.showBuffer();
  }

  /** @param {Model} model */
  #build(model) {
    const { context } = this;
    const change = (/** @type {Partial<State>} */ changes, /** @type {boolean} */ push = false) =>
      this.#change(changes, push);
    const picture = new Picture(context, model, change, {
      choose: (from, to, allocator) => void this.#chooseMoment(from, to, allocator),
      key: (event) => this.#key(event),
      toPeak: () => this.#toPeak(),
    });
    const live = new Live(context, model, change, () => {
      picture.know(live.isDescribed, live.hasStacks);
      this.#showRange();
      picture.chart?.redraw();
      void lifetimes.show();
    });
    const between = new Between(context, model, change);
    const addresses = new Addresses(context, model, change);
    const lifetimes = new Lifetimes(context, model, change);
    const findings = new Findings(context, model, change, (answer) => {
      this.#notify("findings", answer);
      lifetimes.know(answer.data.growth);
    });
    if (this.#tables.includes("hlo_modules")) {
      this.#programs = new Programs(context, () => model.state, change, false);
      void this.#programs.show();
    }
    this.#parts = { picture, live, between, addresses, lifetimes, findings };
    this.#ends.push(() => picture.destroy(), () => live.destroy(), () => between.destroy(),
      () => addresses.destroy(), () => lifetimes.destroy());
    fill(this.body, h("div", { class: "memory-main" }, picture.element, between.element, live.element,
      addresses.element, lifetimes.element, this.#programs?.element ?? ""), findings.element);
    fill(context.main, this.#title(), this.remarks, this.body);
    picture.redraw();
    addresses.show();
    void lifetimes.show();
    this.#moveTo(model.state);
    this.#ends.push(model.viewport.onChange(() => this.#moved()));
    live.show();
    void this.#loadRest(model);
  }

  /** What is between A and B, where a range is measured. */
  #showRange() {
    const parts = this.#parts;
    void parts?.between.show(parts.live.isDescribed, parts.live.hasStacks);
  }

  /** A at the moment looked at, then B, then nothing. @param {number} at */
  #mark(at) {
    const { state } = /** @type {Model} */ (this.#model);
    if (state.a !== null || this.#begin === null) {
      this.#begin = at;
      this.#change({ a: null, b: null });
      announce("A is here; m marks B");
      return;
    }
    const [a, b] = at < this.#begin ? [at, this.#begin] : [this.#begin, at];
    this.#begin = null;
    this.#change({ a, b }, true);
    announce("the range from A to B is shown");
  }

  /** What is not needed for the first picture: steps, then findings. @param {Model} model */
  async #loadRest(model) {
    if (!model.isMoment) await this.#loadSteps(model);
    await this.#parts?.findings.load();
  }

  /** @param {Model} model */
  async #loadSteps(model) {
    try {
      if (!this.#tables.includes("steps")) return;
      const { data } = await this.context.sql(
        "select step_id, name, start_ps, end_ps from steps order by start_ps, end_ps");
      model.steps = new Steps(data);
      this.#parts?.picture.chart?.redraw();
      if (data.length) this.#parts?.live.nameSteps();
    } catch (error) {
      if (isAbort(error)) return;
      this.#notify("steps", { warnings: [], notes: [worded(WORDING.memory.no_steps, { reason: String(error) })] });
    }
  }

  /** The viewport was moved by the reader. */
  #moved() {
    const model = this.#model;
    if (this.#isFollowing || !model) return;
    const { viewport } = model;
    const range = viewport.isWhole ? { from: null, to: null }
      : { from: viewport.from, to: viewport.to };
    model.state = { ...model.state, ...range };
    this.context.change(toParams(range));
  }

  /**
   * Look at the highest moment of a stretch.
   * @param {number} from
   * @param {number} to
   * @param {string} allocator
   */
  async #chooseMoment(from, to, allocator) {
    const model = this.#model;
    if (!model) return;
    const turn = ++this.#turn;
    try {
      const result = await model.counters.highest(allocator, from, to);
      if (turn !== this.#turn) return;
      this.#change({ at: result?.time ?? Math.round((from + to) / 2), allocator });
    } catch (error) {
      if (!isAbort(error)) announce(String(error));
    }
  }

  #toPeak() {
    const model = this.#model, peak = model?.allocator;
    if (!model || !peak) return;
    this.#change({ at: null });
    this.#reveal(peak.peak_time_ps, peak.peak_time_ps);
  }

  /**
   * Bring a stretch into view, unless it is.
   * @param {number} from
   * @param {number} to
   */
  #reveal(from, to) {
    const { viewport } = /** @type {Model} */ (this.#model);
    if (from >= viewport.from && to <= viewport.to) return;
    if (to - from > viewport.span) viewport.bring(from, to, 0.1);
    else {
      const middle = (from + to) / 2;
      viewport.show(middle - viewport.span / 2, middle + viewport.span / 2);
    }
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} whether the key meant something
   */
  #key(event) {
    const model = this.#model, chosen = model?.allocator, chart = this.#parts?.picture.chart;
    if (!model || !chosen || !chart || event.ctrlKey || event.metaKey || event.altKey) return false;
    const at = model.shownMoment ?? model.begin;
    const look = (/** @type {number} */ time) => {
      const inside = Math.min(Math.max(Math.round(time), model.begin), model.end);
      this.#change({ at: inside });
      this.#reveal(inside, inside);
    };
    const pixel = Math.max(1, model.viewport.span / Math.max(1, chart.surface.width));
    switch (event.key) {
      case "p": case "P": this.#toPeak(); return true;
      case "f": case "F": this.#change({ fit: !model.state.fit }); return true;
      case "Home": look(model.begin); return true;
      case "End": look(model.end); return true;
      case ",": look(at - pixel); return true;
      case ".": look(at + pixel); return true;
      case "m": case "M": this.#mark(Math.round(at)); return true;
      case "1": case "2": case "3":
        this.#change({ draw: DRAWN_BY_KEY[event.key] ?? "line" });
        return true;
      case "Escape":
        this.#begin = null;
        if (model.state.a === null) return false;
        this.#change({ a: null, b: null });
        return true;
      case "[": case "]": {
        const step = model.steps?.beside(at, event.key === "]" ? 1 : -1);
        if (!step) {
          announce("there is no such step");
          return true;
        }
        this.#reveal(step.start_ps, step.end_ps);
        void this.#chooseMoment(step.start_ps, step.end_ps + 1, chosen.name);
        announce(`step ${step.name || step.step_id}`);
        return true;
      }
      default: return false;
    }
  }

  /**
   * What was lost or guessed, of every part of the view, once.
   * @param {string} part
   * @param {{warnings: any[], notes: string[]}} answer
   */
  #notify(part, answer) {
    this.#answers.set(part, answer);
    /** @type {Map<string, any>} */
    const warnings = new Map();
    for (const one of [...this.#answers.values()].flatMap((each) => each.warnings)) {
      warnings.set(typeof one === "string" ? one : `${one.kind} ${one.detail}`, one);
    }
    const notes = [...new Set([...this.#answers.values()].flatMap((each) => each.notes))];
    fill(this.remarks, notices({ warnings: [...warnings.values()], notes }));
    this.remarks.hidden = !warnings.size && !notes.length;
  }
}
