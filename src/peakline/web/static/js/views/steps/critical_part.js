/** The critical path of a step: the chain of work that made it as long as it was. */

import { toolCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu, withExport } from "../../core/exporting.js";
import { count, counted, percent, time, worded } from "../../core/format.js";
import { partsBar } from "../../core/parts.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { kindLook, PathStrip, whyText } from "./path_strip.js";
import { WORDING } from "../../core/wording.js";

/**
 * @typedef {object} Segment
 * @property {string} op
 * @property {string} kind
 * @property {string} why
 * @property {string | null} device
 * @property {number | null} line
 * @property {string} line_name
 * @property {number | null} event as the timeline numbers it
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} own_ps
 * @property {number} wait_ps
 * @property {number | null} slack_ps
 */
/**
 * @typedef {object} Path
 * @property {number | null} step_id
 * @property {string | null} step_name
 * @property {string | null} device
 * @property {"graph" | "hlo" | "links" | null} source
 * @property {number} start_ps
 * @property {number} end_ps
 * @property {number} explained
 * @property {number} busy_ps
 * @property {number} wait_ps
 * @property {number} guesses
 * @property {boolean} is_cut
 * @property {Segment[]} segments
 * @property {{op: string, kind: string, own_ps: number, count: number}[]} ops
 * @property {Record<string, number>} kinds
 * @property {any[]} near
 */

/** More choices than these are no help; any step is reached from the chart of steps. */
const CHOICES = 2000;

/** @type {import("./index.js").MountPart} */
export function mountCritical(facts, body, params, signal) {
  const { context } = facts;
  /** @type {PathStrip | null} */
  let strip = null;
  let requested = "";
  const picker = h("select", { id: "path-step" });
  const place = h("div", { class: "stack" });
  picker.addEventListener("change", () => {
    const [step = "", device = ""] = picker.value.split("\n");
    context.change({ step, device }, true);
    params = { ...params, step, device };
    void load();
  });
  const choose = h("div", { class: "row-of", hidden: true },
    h("label", { for: "path-step" }, "Step"), picker);
  fill(body, choose, place);
  void load();
  void addSteps();
  return {
    update(changed) {
      params = changed;
      void load();
    },
    destroy: () => strip?.destroy(),
  };

  async function load() {
    const step = params["step"] || null, device = params["device"] || null;
    const key = `${step}\n${device}`;
    if (key === requested) return;
    requested = key;
    fill(place, loading("Following the critical path"));
    try {
      const answer = await facts.criticalPath(step, step ? device : null);
      if (signal.aborted || requested !== key) return;
      strip?.destroy();
      if (!answer.data.segments.length) {
        fill(place, notices(answer), empty(WORDING.path.none, WORDING.path.needs));
        return;
      }
      const drawn = new PathStrip(answer.data, (segment) => context.link("timeline", there(segment)));
      strip = drawn;
      fill(place, notices(answer), overview(answer.data), strip.element,
        h("div", { class: "row-of" }, h("p", { class: "quiet grow" }, result(answer.data)),
          exportMenu({ name: `${context.session}_critical_path`, json: () => answer.data,
            picture: () => drawn.canvas, command })),
        h("div", { class: "steps-parts" }, segmentsTable(answer.data),
          h("div", { class: "stack" }, shares(answer.data), nearTable(answer.data))));
      selected(answer.data);
    } catch (error) {
      if (signal.aborted || requested !== key) return;
      requested = "";
      fill(place, failed(error, () => void load()));
    }
  }

  async function addSteps() {
    const { data } = await facts.firstSteps(CHOICES).catch(() => ({ data: { steps: [] } }));
    if (signal.aborted || data.steps.length < 2) return;
    fill(picker, h("option", { value: "" }, "of median time"),
      ...data.steps.map((step) => h("option",
        { value: `${step.step_id}\n${step.device ?? ""}` },
        `${step.name || step.step_id}${step.device ? ` on ${step.device}` : ""}: `
        + time(step.wall_ps))));
    choose.hidden = false;
    picker.value = params["step"] ? `${params["step"]}\n${params["device"] ?? ""}` : "";
  }

  /** @param {Path} path */
  function selected(path) {
    if (params["step"]) picker.value = `${path.step_id}\n${path.device ?? ""}`;
  }

  /** @param {Segment} segment */
  function there({ start_ps: start, end_ps: end, event }) {
    const air = Math.max(end - start, 1000);
    return { from: start - air, to: end + air, ...(event === null ? {} : { event }) };
  }

  /** Of the step that is shown. */
  function command() {
    const { step, device } = params;
    return toolCommand(context, "critical_path", { step, device: step ? device : null });
  }

  /** @param {Path} path */
  function overview(path) {
    const whole = path.end_ps - path.start_ps;
    return h("dl", { class: "panel facts" }, ...[
      ["Step", path.step_name ?? WORDING.path.no_step],
      ...(path.device ? [["Device", path.device]] : []),
      ["Takes", time(whole)],
      ["Explained", percent(path.explained)],
      [WORDING.path.waits, time(path.wait_ps)],
      ["Pieces", count(path.segments.length)],
      ...(path.guesses ? [["Guessed", counted(path.guesses, "piece")]] : []),
    ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }

  /** @param {Path} path */
  function segmentsTable(path) {
    const table = new DataTable({
      label: "Pieces of the critical path, in order of time", height: "32rem",
      columns: [
        { key: "op", title: "Piece", width: "minmax(12rem, 3fr)", cell: (row) =>
          h("a", { href: context.link("timeline", there(row)), title: row.op }, row.op) },
        { key: "kind", title: "Kind", width: "6rem", cell: (row) => kindLook(row.kind).text },
        { key: "own_ps", title: "Takes", kind: "time", width: "6.5rem" },
        { key: "wait_ps", title: "Before it", kind: "time", width: "6.5rem",
          help: "in which nothing on the path ran" },
        { key: "why", title: "Came after", width: "minmax(9rem, 1fr)",
          cell: (row) => whyText(row.why) },
        { key: "slack_ps", title: "Slack", kind: "time", width: "6rem",
          help: "how much longer it could have lasted without the step lasting longer" },
        { key: "line_name", title: "On", width: "minmax(9rem, 1fr)",
          cell: (row) => [row.device, row.line_name].filter(Boolean).join(" › ") },
      ],
      sort: "",
    });
    table.setRows(path.segments);
    return withExport(table, { name: `${context.session}_critical_path_pieces`, command },
      h("h2", {}, "Pieces"));
  }

  /** @param {Path} path */
  function shares(path) {
    const parts = Object.entries(path.kinds).sort(([, one], [, other]) => other - one)
      .map(([part, ps]) => ({ part, ps }));
    if (path.wait_ps) parts.push({ part: "nothing", ps: path.wait_ps });
    const table = new DataTable({
      label: "What is on the path", height: "16rem",
      columns: [
        { key: "op", title: "Most on the path", width: "minmax(10rem, 1fr)" },
        { key: "own_ps", title: "Takes", kind: "time", width: "6.5rem" },
        { key: "share", title: "Share", kind: "percent", width: "5rem" },
        { key: "count", title: "Pieces", kind: "count", width: "5.5rem" },
      ],
    });
    const whole = Math.max(path.end_ps - path.start_ps, 1);
    table.setRows(path.ops.map((op) => ({ ...op, share: op.own_ps / whole })));
    return h("section", { class: "panel stack" }, h("h2", {}, "What it is made of"),
      partsBar(parts, "The critical path", kindLook),
      withExport(table, { name: `${context.session}_critical_path_ops`, command }));
  }

  /** @param {Path} path */
  function nearTable(path) {
    if (!path.near.length) return null;
    const table = new DataTable({
      label: "Work beside the path with the least slack", height: "14rem",
      columns: [
        { key: "op", title: "Nearly critical", width: "minmax(10rem, 1fr)", cell: (row) =>
          h("a", { href: context.link("timeline", there(row)), title: row.op }, row.op) },
        { key: "slack_ps", title: "Slack", kind: "time", width: "6.5rem",
          help: "how much longer it could have lasted without the step lasting longer" },
      ],
    });
    table.setRows(path.near);
    return h("section", { class: "panel stack" }, withExport(table,
      { name: `${context.session}_nearly_critical`, command }, h("h2", {}, "What becomes critical next")));
  }
}

/** @param {Path} path */
function result({ source, is_cut: isCut }) {
  return worded(WORDING.path.known, { how: WORDING.path.known_by[source ?? "nothing"] })
    + (isCut ? ` ${WORDING.path.is_cut}` : "");
}
