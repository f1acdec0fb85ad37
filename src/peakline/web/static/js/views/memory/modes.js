/** How memory in use is drawn: as a curve, as layers, or buffer by buffer; with which lines. */

import { fill, h } from "../../core/dom.js";
import { bytes, count, percent, worded } from "../../core/format.js";
import { idOf, nameOf } from "./layers.js";
import { BY, DESCRIBED, DRAWN } from "./state.js";
import { WORDING } from "../../core/wording.js";

const LONGEST_NAME = 34;

/** @typedef {import("./state.js").State} State */

/**
 * The buttons above the picture.
 * @param {import("./model.js").Model} model
 * @param {(changes: Partial<State>) => void} change
 */
export function makeModes(model, change) {
  const buttons = h("div", { class: "row-of memory-draw", role: "group", "aria-label": "Draw" });
  const by = h("select", { "aria-label": "Stacked by", onchange: () =>
    change({ by: /** @type {State["by"]} */ (by.value), draw: "stack", off: [] }) });
  const switches = h("div", { class: "row-of memory-switches", role: "group", "aria-label": "Lines" });
  const note = h("span", { class: "quiet" }, "");
  const element = h("div", { class: "row-of memory-modes" }, buttons, by, switches, note);
  return { element, redraw };

  /**
   * @param {{isDescribed: boolean, hasStacks: boolean, hasReserved: boolean | null,
   *   programEvents: string[] | null}} known
   */
  function redraw({ isDescribed, hasStacks, hasReserved, programEvents }) {
    const { state, allocator } = model;
    const key = document.activeElement instanceof HTMLElement && element.contains(document.activeElement)
      ? document.activeElement.dataset["key"] : undefined;
    fill(buttons, Object.entries(DRAWN).map(([name, [text, help]]) => h("button", {
      type: "button", title: help, "aria-pressed": String(state.draw === name), "data-key": name,
      onclick: () => change({ draw: /** @type {State["draw"]} */ (name) }),
    }, text)));
    const names = Object.keys(BY).filter((name) => name === state.by
      || (name === "stack" ? hasStacks : isDescribed
        || !(/** @type {readonly string[]} */ (DESCRIBED)).includes(name)));
    fill(by, names.map((name) => h("option", { value: name, selected: name === state.by },
      `by ${name === "program" && programEvents ? "program"
        : BY[/** @type {State["by"]} */ (name)].toLowerCase()}`)));
    by.hidden = state.draw !== "stack";
    note.hidden = state.draw !== "stack" || state.by !== "program";
    note.textContent = programEvents
      ? worded(WORDING.memory.by_program, { events: programEvents.join(", ") }) : WORDING.memory.by_step;
    const capacity = allocator?.capacity_bytes ?? null;
    fill(switches,
      toggle("requested", "Requested", state.draw === "stack",
        "Layers of what the program requested, and one of what the allocator rounded up",
        "What was requested is a layer of its own in the picture Stacked"),
      toggle("reserved", "Reserved", hasReserved !== false, "What was taken from the device",
        "Only snapshots of PyTorch's allocator say what was taken from the device"),
      toggle("capacity", "Capacity", capacity !== null,
        `The most that the allocator may take: ${bytes(capacity)}`, "The file does not say how much "
          + "the allocator may take"));
    if (key) {
      const result = element.querySelector(`[data-key="${key}"]`);
      if (result instanceof HTMLElement) result.focus();
    }
  }

  /**
   * @param {"requested" | "reserved" | "capacity"} name
   * @param {string} text
   * @param {boolean} isKnown
   * @param {string} help
   * @param {string} reason why it is missing
   */
  function toggle(name, text, isKnown, help, reason) {
    const isOn = isKnown && model.state[name];
    return h("label", { title: isKnown ? help : reason, class: isKnown ? "" : "missing" },
      h("input", { type: "checkbox", checked: isOn, disabled: !isKnown, "data-key": `switch-${name}`,
        onchange: () => change({ [name]: !model.state[name] }) }), text,
      isKnown ? null : h("span", { class: "unseen" }, `: ${reason}`));
  }
}

/**
 * What the colors of the picture are, each of which can be taken out of it.
 * @param {import("./layers.js").Layers} layers
 * @param {import("./polygons.js").Polygons} polygons
 * @param {import("./model.js").Model} model
 * @param {(changes: Partial<State>) => void} change
 */
export function makeLayerLegend(layers, polygons, model, change) {
  const element = h("div", { class: "memory-legend layer-legend", role: "group",
    "aria-label": "Layers of the picture" });
  return { element, redraw };

  function redraw() {
    const { draw, off } = model.state;
    element.hidden = draw === "line";
    const key = document.activeElement instanceof HTMLElement && element.contains(document.activeElement)
      ? document.activeElement.dataset["key"] : undefined;
    // What only scrolls is reached by keyboard, too.
    element.tabIndex = draw === "buffers" ? 0 : -1;
    if (draw === "stack") fill(element, stackChips(off));
    else if (draw === "buffers") fill(element, bufferChips());
    if (key) {
      const result = element.querySelector(`[data-key="${key}"]`);
      if (result instanceof HTMLElement) result.focus();
    }
  }

  /** @param {string[]} off */
  function stackChips(off) {
    const answer = layers.known;
    if (!answer) return [];
    const whole = answer.layers.reduce((sum, { top_bytes: size }) => sum + size, 0);
    // From the highest layer to the lowest, as the picture has them.
    return [...answer.layers].reverse().map((layer) => {
      const id = idOf(layer), isOff = off.includes(id), name = nameOf(layer);
      return h("button", { type: "button", class: "chip", "aria-pressed": String(!isOff), "data-key": id,
        "aria-label": `${name}, ${bytes(layer.top_bytes)}`,
        title: `${name}: ${bytes(layer.top_bytes)}, ${percent(whole ? layer.top_bytes / whole : 0)} of the `
          + `highest moment in view. Click to ${isOff ? "put it back" : "take it out of the picture"}.`,
        onpointerenter: () => point(layer), onfocus: () => point(layer),
        onpointerleave: () => model.point(null), onblur: () => model.point(null),
        onclick: () => change({ off: isOff ? off.filter((one) => one !== id) : [...off, id] }) },
      swatch(layers.colorName(layer)), h("span", { class: "name" }, ending(name)),
      h("span", { class: "quiet" }, bytes(layer.top_bytes)));
    });
  }

  /** @param {import("./layers.js").Layer} layer */
  function point({ kind, key }) {
    model.point(kind === "group" ? { record: null, texts: { [model.state.by]: key } } : null);
  }

  function bufferChips() {
    const answer = polygons.known;
    if (!answer) return [];
    const { record, ops } = answer.buffers;
    const one = ops.length === 1 && ops[0] ? worded(WORDING.polygons.one_op, { op: ending(ops[0]) }) : WORDING.polygons.no_op;
    const rest = [
      worded(WORDING.polygons.largest, { buffers: count(record.length) }),
      answer.others ? worded(WORDING.polygons.smaller, { buffers: count(answer.others) }) : "",
      answer.unseen ? worded(WORDING.polygons.unseen, { buffers: count(answer.unseen) }) : "",
      polygons.isByBuffer && record.length ? worded(WORDING.polygons.by_buffer, { since: one }) : "",
    ].filter(Boolean).join("; ");
    return [h("span", { class: "quiet" }, `${rest}.`),
      ...polygons.colored.map(({ op, name }) => h("span", { class: "chip", title: op }, swatch(name),
        h("span", { class: "name" }, ending(op || "(no op)"))))];
  }
}

/** @param {string} name of the stylesheet's color */
function swatch(name) {
  return h("span", { class: "swatch", "aria-hidden": "true",
    style: { backgroundColor: `var(--${name})` } });
}

/** Of a long name its end says more. @param {string} name */
function ending(name) {
  return name.length > LONGEST_NAME ? `…${name.slice(-LONGEST_NAME + 1)}` : name;
}
