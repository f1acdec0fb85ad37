/** How long buffers live, and what every step leaves: two charts of bars, which are tables too. */

import { isAbort } from "../../core/api.js";
import { fill, h, svg } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { bytes, counted, time, worded } from "../../core/format.js";
import { failed, loading } from "../../core/states.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { toolCommand } from "../../core/command.js";
import { WORDING } from "../../core/wording.js";

const HEIGHT = 120;
const NARROWEST = 240, WIDEST = 560;
/** Pixels of a letter below the bars, and between names. */
const LETTER = 6.5, GAP = 6;
const WAIT_MS = 300;

/** @typedef {import("./state.js").State} State */
/**
 * @typedef {object} Bar
 * @property {string} name below it
 * @property {number} value bytes
 * @property {string[]} tip
 * @property {boolean} [isChosen]
 * @property {() => void} [choose]
 */
/** @typedef {{first: number, last: number, from: number, to: number, text: string}} Slope of places and bytes */

export class Lifetimes {
  #query = "";
  #asking = new AbortController();
  /** @type {any[]} */
  #rows = [];
  /** @type {any[]} */
  #growth = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./model.js").Model} model
   * @param {(changes: Partial<State>, push?: boolean) => void} change
   */
  constructor(context, model, change) {
    this.context = context;
    this.model = model;
    this.change = change;
    this.state = h("div");
    this.lives = h("div");
    this.steps = h("div");
    this.element = h("details", { class: "panel memory-lifetimes", ontoggle: () => {
      if (this.element.open !== model.state.lifetimes) change({ lifetimes: this.element.open });
    } },
      h("summary", {}, h("h2", {}, "Lifetimes and growth")),
      h("div", { class: "between-parts" },
        h("section", { class: "stack", "aria-label": "Lifetimes" },
          h("div", { class: "row-of" }, h("h3", {}, "How long buffers live, by bytes"),
            h("span", { class: "grow" }), exportMenu({ name: `${context.session}-lifetimes`,
              rows: () => tableOf(this.#rows),
              command: () => toolCommand(context, "memory_lifetimes", this.#question()) })),
          this.state, this.lives),
        h("section", { class: "stack", "aria-label": "Growth" },
          h("div", { class: "row-of" }, h("h3", {}, "Live when each step ends"),
            h("span", { class: "grow" }), exportMenu({ name: `${context.session}-growth`,
              rows: () => tableOf(this.#found?.steps ?? []) })), this.steps)));
    this.ends = model.viewport.onChange(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.show(), WAIT_MS);
    });
  }

  destroy() {
    this.ends();
    clearTimeout(this.#timer);
    this.#asking.abort();
    hideTip();
  }

  /** What the findings say of growth is known. @param {any[]} growth */
  know(growth) {
    this.#growth = growth;
    this.#drawSteps();
  }

  get #found() {
    return this.#growth.find(({ allocator }) => allocator === this.model.allocator?.name);
  }

  #question() {
    const { viewport, allocator } = this.model;
    return { allocator: allocator?.name, start_ps: viewport.from, end_ps: viewport.to };
  }

  /** What is in view, where the part is open. */
  async show() {
    const { isMoment, state } = this.model;
    this.element.hidden = isMoment;
    if (this.element.open !== state.lifetimes) this.element.open = state.lifetimes;
    if (!state.lifetimes || isMoment) return;
    this.#drawSteps();
    const query = this.#question(), text = JSON.stringify(query);
    if (text !== this.#query) {
      this.#query = text;
      this.#asking.abort();
      this.#asking = new AbortController();
      fill(this.state, loading("Measuring lifetimes"));
      try {
        const { data } = await this.context.tool("memory_lifetimes", query,
          AbortSignal.any([this.#asking.signal, this.context.signal]));
        this.#rows = data.rows;
        fill(this.state);
      } catch (error) {
        if (isAbort(error)) return;
        this.#query = "";
        fill(this.state, failed(error, () => void this.show()));
        return;
      }
    }
    this.#drawLives();
  }

  #drawLives() {
    const { life } = this.model;
    const own = life && life.start_ps !== null && life.end_ps !== null ? life.end_ps - life.start_ps : null;
    const isOpen = life !== null && life.end_ps === null;
    fill(this.lives, this.#rows.length ? bars(this.lives, "Bytes by lifetime", this.#rows.map((row) => ({
      name: row.from_ps === null ? "not freed" : time(row.from_ps, 2),
      value: row.bytes,
      isChosen: row.from_ps === null ? isOpen : own !== null && own >= row.from_ps && own < row.to_ps,
      tip: [row.from_ps === null ? WORDING.memory.never_freed_whole
        : `lives from ${time(row.from_ps, 2)} to ${time(row.to_ps, 2)}`,
      `${bytes(row.bytes)} in ${counted(row.buffers, "buffer")}`,
      row.bytes ? `most of it: ${row.largest_op || "(no op)"}, ${bytes(row.largest_op_bytes)}` : ""],
    }))) : h("p", { class: "quiet" }, WORDING.memory.nothing_allocated));
  }

  #drawSteps() {
    const result = this.#found;
    if (!result || result.steps.length < 2) {
      fill(this.steps, h("p", { class: "quiet" }, WORDING.memory.no_two_steps));
      return;
    }
    const { steps, sentence, groups } = result;
    fill(this.steps,
      bars(this.steps, WORDING.memory.bytes_by_step, steps.map((/** @type {any} */ one) => ({
        name: /\d+$/.exec(one.name || "")?.[0] ?? String(one.step), value: one.in_use_bytes,
        tip: [one.name || `step ${one.step}`, worded(WORDING.memory.at_its_end, { used: bytes(one.in_use_bytes) })],
        choose: () => {
          const step = this.model.steps?.withId(one.step);
          if (step) this.change({ at: Math.min(step.end_ps, this.model.end) }, true);
        },
      })), slopeOf(result)),
      h("p", {}, sentence),
      groups.length ? h("ul", {}, groups.slice(0, 5).map((/** @type {any} */ one) => h("li", {},
        worded(WORDING.memory.grows, { what: `${one.op || "(no op)"} ${one.shape ?? ""}`,
          how: one.pattern.replace(/_/g, " "), rate: bytes(one.bytes_per_step), held: bytes(one.held_bytes) })))) : null);
  }
}

/**
 * A line with the slope that the finding says, through the middle of the steps over which it grows.
 * @param {any} found
 * @returns {Slope | null}
 */
function slopeOf({ steps, groups, bytes_per_step: rate, pattern }) {
  const own = groups.filter((/** @type {any} */ one) => one.pattern === pattern);
  if (pattern !== "leak" || !own.length || !rate) return null;
  const since = Math.min(...own.map((/** @type {any} */ one) => one.since_step));
  const until = Math.max(...own.map((/** @type {any} */ one) => one.until_step));
  const places = steps.flatMap((/** @type {any} */ one, /** @type {number} */ place) =>
    one.step >= since && one.step <= until ? [place] : []);
  const [first] = places, last = places.at(-1);
  if (places.length < 2) return null;
  const bases = places.map((/** @type {number} */ place) =>
    steps[place].in_use_bytes - rate * steps[place].step).sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
  const base = bases[Math.floor(bases.length / 2)];
  return { first, last, from: base + rate * steps[first].step, to: base + rate * steps[last].step,
    text: worded(WORDING.memory.slope,
      { rate: bytes(rate), first: steps[first].step, last: steps[last].step }) };
}

/**
 * Bars of bytes; each is reached by keyboard where it leads somewhere.
 * @param {HTMLElement} host where they go: they are as wide, so that texts have their own size
 * @param {string} label
 * @param {Bar[]} all
 * @param {Slope | null} [slope] a line over them
 */
function bars(host, label, all, slope = null) {
  const top = Math.max(1, ...all.map(({ value }) => value));
  const whole = Math.min(Math.max(host.clientWidth || WIDEST, NARROWEST), WIDEST), wide = whole / all.length;
  const picture = svg("svg", { viewBox: `0 0 ${whole} ${HEIGHT + 34}`, class: "memory-bar-chart",
    role: "group", "aria-label": `${label}; the largest is ${bytes(top)}${slope ? `; ${slope.text}` : ""}` });
  all.forEach(({ value, tip, isChosen, choose }, place) => {
    const height = (value / top) * HEIGHT, x = place * wide;
    const text = tip.filter(Boolean).join(", ");
    const bar = svg("g", { role: choose ? "button" : "img", "aria-label": text,
      ...(choose ? { tabindex: 0 } : {}), class: isChosen ? "bar chosen" : "bar" },
    svg("rect", { class: "hit", x, y: 0, width: wide, height: HEIGHT + 12 }),
    svg("rect", { class: "value", x: x + wide * 0.08, y: 12 + HEIGHT - height, width: wide * 0.84,
      height: Math.max(height, value ? 1 : 0) }));
    bar.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, tip.filter(Boolean)));
    bar.addEventListener("pointerleave", hideTip);
    if (choose) {
      bar.addEventListener("click", choose);
      bar.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      });
    }
    picture.append(bar);
  });
  // From the last one, which may be what is not freed; a name that would touch the next is left out.
  let free = whole;
  for (let place = all.length - 1; place >= 0; place--) {
    const name = all[place]?.name ?? "", half = (name.length * LETTER) / 2;
    const x = Math.min((place + 0.5) * wide, whole - half);
    if (x + half > free) continue;
    free = x - half - GAP;
    picture.append(svg("text", { x, y: HEIGHT + 28, "text-anchor": "middle", "aria-hidden": "true" }, name));
  }
  if (slope) {
    const y = (/** @type {number} */ value) => 12 + HEIGHT - (value / top) * HEIGHT;
    picture.append(svg("line", { class: "slope", x1: (slope.first + 0.5) * wide, y1: y(slope.from),
      x2: (slope.last + 0.5) * wide, y2: y(slope.to) }), svg("text", { class: "slope-text", x: 4, y: 11,
      "aria-hidden": "true" }, slope.text));
  }
  return picture;
}

/** @param {any[]} rows */
function tableOf(rows) {
  const columns = Object.keys(rows[0] ?? {});
  return { columns, rows: rows.map((row) => columns.map((name) => row[name])) };
}
