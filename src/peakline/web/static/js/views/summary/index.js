/** The summary: what a profile's memory and time do, and what to fix first. */

import { fill, h } from "../../core/dom.js";
import { commandOf } from "../../core/command.js";
import { exportMenu } from "../../core/exporting.js";
import { failed, loading, notices } from "../../core/states.js";
import { devicesPanel, factsPanel, memoryPanel, opsPanel, stepPanel } from "./facts.js";
import { fixesPanel } from "./fixes.js";
import { graphPanel } from "./graph.js";
import { hostsPanel } from "./hosts.js";

/**
 * @typedef {object} Summary what the tool `summary` says of one host
 * @property {{path: string, format: string, host: string, duration_ps: number}} profile
 * @property {{allocators: Allocator[]} | null} memory
 * @property {Times | null} time
 * @property {(import("../../core/finding.js").Finding & {about: "memory" | "time"})[]} first
 * @property {import("../../core/sentence.js").Sentence[]} notable what stands out besides
 * @property {number} further_findings
 * @property {import("../../core/api.js").Warning[]} warnings
 */
/**
 * @typedef {object} Allocator
 * @property {string} allocator
 * @property {number} peak_bytes
 * @property {number} peak_time_ps
 * @property {number | null} peak_step
 * @property {number | null} capacity_bytes
 * @property {number} untracked_allocations
 */
/**
 * @typedef {object} Times
 * @property {number} steps how many there are, whatever the number of devices
 * @property {{count: number, mean_ps: number, min_ps: number, median_ps: number, p95_ps: number, max_ps: number} | null} times
 * @property {{name: string, count: number, median_ps: number, min_ps: number, max_ps: number}[]} times_by_name of steps of several names, those with most time first; `times` and `parts` are of the first
 * @property {string | null} found_by how the steps were found
 * @property {{part: string, per_step_ps: number, share: number}[]} parts
 * @property {Record<string, any>[]} devices rows of `device_time`
 * @property {string[]} to_record how to record what is missing
 * @property {{side: string, op: string, op_type: string | null, self_ps: number, share: number, is_input: boolean}[]} top_ops
 */

/** Warnings that a panel tells in its own words. */
const TOLD = new Set(["no_memory_events", "no_steps"]);

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  const page = h("div", { class: "stack" });
  context.main.append(h("h1", { class: "unseen" }, "Summary"), page);
  void show();
  return { update() {}, destroy() {} };

  async function show() {
    fill(page, loading("Reading the profile"));
    try {
      const answer = await context.tool("summary");
      /** @type {Summary} */
      const summary = answer.data;
      const { tools = [] } = await context.document?.catch(() => null) ?? {};
      const isGraph = !summary.memory && !summary.time && !summary.first.length
        && tools.includes("graph_scopes");
      fill(page, factsPanel(summary, exportMenu({
        name: `${context.session}_summary`, json: () => summary,
        command: () => commandOf(context, "summary"),
      })),
        notices({ warnings: summary.warnings.filter(({ kind }) => !TOLD.has(kind)),
          notes: answer.notes }),
        h("div", { class: "summary-parts" },
          h("div", { class: "stack" }, isGraph ? graphPanel(context)
            : fixesPanel(context, summary), opsPanel(context, summary)),
          h("div", { class: "stack" }, ...numberPanels(summary))));
    } catch (error) {
      if (!context.signal.aborted) fill(page, failed(error, () => void show()));
      return;
    }
    const session = await context.document?.catch(() => null);
    if (session && session.hosts.length > 1 && !context.signal.aborted) {
      page.append(hostsPanel(context, session.hosts.length));
    }
  }

  /**
   * What there are numbers of first, then what the file does not tell.
   * @param {Summary} summary
   */
  function numberPanels(summary) {
    const time = [stepPanel(context, summary), devicesPanel(summary)];
    const memory = memoryPanel(context, summary);
    return summary.time ? [...time, memory] : [memory, ...time];
  }
}
