/** Steps and ops: a view of several parts, each asked for when it is shown. */

import { fill, h } from "../../core/dom.js";
import { mountCritical } from "./critical_part.js";
import { Facts } from "./facts.js";
import { mountInput } from "./input_part.js";
import { mountKernels } from "./kernels_part.js";
import { mountOps } from "./ops_part.js";
import { mountFunctions, mountModules, mountShapes } from "./places_part.js";
import { mountSteps } from "./steps_part.js";

/** @typedef {Record<string, string>} Params */
/**
 * A part of the view: `update` gets new parameters of the address, `destroy` ends it.
 * @typedef {{update(params: Params): void, destroy?(): void}} Part
 */
/** @typedef {(facts: Facts, body: HTMLElement, params: Params, signal: AbortSignal) => Part} MountPart */

/** @type {Record<string, {title: string, mount: MountPart}>} */
const PARTS = {
  steps: { title: "Steps", mount: mountSteps },
  ops: { title: "Ops", mount: mountOps },
  functions: { title: "Functions", mount: mountFunctions },
  modules: { title: "Modules", mount: mountModules },
  shapes: { title: "Shapes", mount: mountShapes },
  kernels: { title: "Kernels", mount: mountKernels },
  input: { title: "Input pipeline", mount: mountInput },
  critical: { title: "Critical path", mount: mountCritical },
};

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const facts = new Facts(context);
  const nav = h("nav", { class: "tabs", "aria-label": "Parts of steps and ops" });
  const body = h("div", { class: "stack" });
  context.main.append(h("h1", { class: "unseen" }, "Steps and ops"), nav, body);
  let name = "";
  /** @type {Part | null} */
  let part = null;
  let ends = new AbortController();
  context.signal.addEventListener("abort", leave);
  update(context.params);
  return {
    update, destroy: leave,
    help: /** @type {[string, string][]} */ ([
      ["← →", "the step before, the step after, in the chart that has the focus"],
      ["Shift ← →", "a range of steps from the chosen one on; so does dragging with Shift"],
      ["↑ ↓ ← → Enter", "in the picture of every step by op: go to a cell, choose its step"],
      ["W S A D", "zoom and move the chart; 0 shows all; so do Ctrl with the wheel, and dragging"],
    ]),
  };

  /** @param {Params} params */
  function update(params) {
    const requested = params["part"] && Object.hasOwn(PARTS, params["part"]) ? params["part"] : "steps";
    if (requested === name) {
      part?.update(params);
      return;
    }
    leave();
    name = requested;
    ends = new AbortController();
    drawTabs(params);
    fill(body);
    part = PARTS[name]?.mount(facts, body, params, ends.signal) ?? null;
  }

  function leave() {
    ends.abort();
    part?.destroy?.();
    part = null;
  }

  /** @param {Params} params */
  function drawTabs(params) {
    const device = params["device"] ?? "";
    fill(nav, ...Object.entries(PARTS).map(([key, { title }]) => h("a", {
      href: context.link("steps", { device, part: key === "steps" ? "" : key }),
      "aria-current": key === name ? "page" : null,
    }, title)));
  }
}
