/** The chosen buffer: its facts, where it was allocated, its life. */

import { isAbort } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";
import { bytes, time } from "../../core/format.js";
import { fact } from "./facts.js";
import { stepName } from "./rows.js";
import { WORDING } from "../../core/wording.js";

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {import("./model.js").Model} model
 * @param {import("./live.js").Change} change
 */
export function makeBuffer(context, model, change) {
  const element = h("section", { class: "memory-buffer", hidden: true,
    "aria-label": "The chosen buffer" });
  /** The one that is shown. @type {any} */
  let known = null, hasTimeline = false;
  // An error of it is told where the page opens the session.
  context.document?.then(({ tools }) => void (hasTimeline = tools.includes("timeline")), () => undefined);
  return { element, show };

  /**
   * Show the buffer that the state names, from rows that are there or by asking for it. One that is
   * not live at the moment stays shown.
   * @param {any[]} rows
   * @param {AbortSignal} signal
   */
  async function show(rows, signal) {
    const { buffer: record, at } = model.state;
    if (record === null) {
      known = model.life = null;
      element.hidden = true;
      return;
    }
    if (known?.record !== record) {
      known = rows.find((row) => row.record === record) ?? null;
      if (!known) {
        const { data } = await context.tool("live_memory",
          { allocator: model.allocator?.name, at_ps: at, record, limit: 1 }, signal);
        if (model.state.buffer !== record) return;
        known = data.rows[0] ?? null;
      }
      draw();
    }
    model.life = known && { start_ps: known.start_ps, end_ps: known.end_ps,
      text: `${known.op || "(no op)"} ${bytes(known.bytes)}` };
  }

  function draw() {
    element.hidden = false;
    const close = h("button", { type: "button", class: "plain", "aria-label": "Leave this buffer",
      onclick: () => change({ buffer: null }) }, "×");
    if (!known) {
      fill(element, h("div", { class: "row-of" },
        h("p", { class: "grow" }, WORDING.memory.not_live),
        close));
      return;
    }
    const { op, start_ps: begin, end_ps: end, stack_id: stack } = known;
    const go = (/** @type {number} */ at) => h("button", { type: "button", class: "plain link",
      title: "Look at this moment", onclick: () => change({ at }, true) }, time(at, 7));
    const frames = h("div");
    fill(element,
      h("div", { class: "row-of" }, h("h3", { class: "grow" }, op || "(no op)"),
        !model.isMoment && h("button", { type: "button", onclick: () => {
          const { viewport } = model;
          viewport.bring(begin ?? viewport.first, end ?? viewport.last, 0.1);
        } }, "Show its life"), close),
      h("dl", { class: "facts small" },
        fact("Bytes", bytes(known.bytes), `${known.bytes.toLocaleString("en-US")} bytes`),
        known.requested_bytes !== null && fact("Requested", bytes(known.requested_bytes)),
        known.data_type && fact("Type and shape", `${known.data_type} ${known.shape}`),
        known.region_type && fact("Region", known.region_type),
        !model.isMoment && fact("Allocated", begin === null ? "before the profile"
          : h("span", {}, go(begin), hasTimeline && h("span", {}, " ",
            h("a", { href: context.link("timeline", { at: begin, pick: begin }) }, "in the timeline")))),
        !model.isMoment && fact("Freed", end === null ? WORDING.memory.never_freed : go(end)),
        begin !== null && end !== null && fact("Lives for", time(end - begin)),
        known.start_step !== null && fact("Steps", steps(known)),
        known.address && fact("Address", h("code", {}, known.address)),
        known.stream !== null && fact("Stream", String(known.stream))),
      frames);
    if (stack !== null) void showStack(frames, stack);
  }

  /** @param {any} row */
  function steps({ start_step: first, end_step: last }) {
    const from = stepName(first, model), to = stepName(last, model);
    return !to || to === from ? from : `${from} to ${to}`;
  }

  /**
   * @param {HTMLElement} place
   * @param {number} stack
   */
  async function showStack(place, stack) {
    try {
      const { data } = await context.sql(
        `select "function", file, line from stacks where stack_id = ${Number(stack)} order by depth`);
      if (!data.length) return;
      fill(place, h("details", {}, h("summary", {}, "Where it was allocated"),
        h("ol", { class: "frames" }, ...data.map((/** @type {any} */ frame) => h("li", {},
          h("code", {}, frame.function || "?"),
          frame.file && h("span", { class: "quiet" }, ` ${frame.file}:${frame.line}`))))));
    } catch (error) {
      if (!isAbort(error)) fill(place, h("p", { class: "quiet" }, `No call stack: ${error}`));
    }
  }
}
