/** Ops: how often each ran and how long; one op's distribution, runs and kernels. */

import { changed } from "../../core/address.js";
import { toolCommand } from "../../core/command.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { counted, time, worded } from "../../core/format.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { OpDetail } from "./op_detail.js";
import { OpPictures } from "./op_pictures.js";
import { shareColumns, withShares } from "./sides.js";
import { StepFilter } from "./step_filter.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Params} Params */
/**
 * @typedef {object} Op a row of the table `op_stats`, with its share
 * @property {"host" | "device"} side
 * @property {string} op
 * @property {string | null} op_type
 * @property {number} occurrences
 * @property {number} total_ps
 * @property {number} self_ps
 * @property {number} min_ps
 * @property {number} median_ps
 * @property {number} p95_ps
 * @property {number} max_ps
 * @property {number | null} flops
 * @property {number | null} bytes_accessed
 * @property {boolean | null} is_eager
 * @property {number | null} allocated_bytes
 * @property {number | null} peak_live_bytes
 * @property {number} share of its side's self time
 */

/**
 * @typedef {object} OpTimes the answer of `op_time`
 * @property {{step_id: number, name: string | null, last_id: number, last_name: string | null, steps: number, start_ps: number, end_ps: number} | null} steps
 * @property {string | null} plane the one that they ran on; null: any
 * @property {string[]} planes that ops ran on, devices first
 * @property {boolean} has_memory
 * @property {import("./roofline.js").Peaks} roofline
 * @property {Op[]} ops
 */

const SEARCH_MS = 150;

/** @type {import("./index.js").MountPart} */
export function mountOps(facts, body, params, signal) {
  /** @type {Ops | null} */
  let shown = null;
  let key = "";
  void load();
  return {
    update(others) {
      params = others;
      if (keyOf(params) !== key) void load();
      else shown?.update(params);
    },
    destroy: () => shown?.destroy(),
  };

  /** @param {Record<string, string | null>} changes other steps, by the reader */
  function choose(changes) {
    facts.context.change(changes, true);
    params = changed(params, changes);
    void load();
  }

  async function load() {
    key = keyOf(params);
    const requested = key;
    if (!shown) fill(body, loading("Adding up the ops"));
    try {
      const answer = await facts.opTimes(params["step"] ?? null, params["last"] ?? null,
        params["plane"] ?? null);
      if (signal.aborted || requested !== key) return;
      shown?.destroy();
      shown = null;
      if (!answer.data.planes.length) {
        fill(body, notices(answer), empty(WORDING.ops.none, WORDING.ops.instead,
          " ", h("a", { href: facts.context.link("timeline") }, "Timeline")));
        return;
      }
      shown = new Ops(facts, answer.data, params["sort"] ?? "", choose);
      fill(body, notices(answer), shown.element);
      shown.update(params);
    } catch (error) {
      if (signal.aborted || requested !== key) return;
      shown?.destroy();
      shown = null;
      const wanted = params["plane"] ?? null;
      fill(body, new StepFilter(facts, null, choose, params["step"] ?? "",
        { planes: wanted ? [wanted] : [], plane: wanted }).element,
        failed(error, () => void load()));
    }
  }
}

/** What of the address decides which ops are shown. @param {Params} params */
function keyOf(params) {
  return JSON.stringify([params["step"] ?? "", params["last"] ?? "", params["plane"] ?? ""]);
}

class Ops {
  #side = "";
  #search = "";
  /** Only ops of the part of the picture that is chosen; null: all. @type {Set<Op> | null} */
  #within = null;
  /** @type {Op | null} */
  #chosen = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {import("./facts.js").Facts} facts
   * @param {OpTimes} answer
   * @param {string} sort
   * @param {(changes: Record<string, string | null>) => void} chooseSteps
   */
  constructor(facts, answer, sort, chooseSteps) {
    const ops = withShares(answer.ops);
    this.context = facts.context;
    this.ops = ops;
    this.pictures = new OpPictures(this.context, answer.roofline,
      (op) => this.#pick(op), (within) => {
        this.#within = within;
        this.#filter(this.#side, this.#search);
      });
    this.sides = ["device", "host"].filter((side) => ops.some((op) => op.side === side));
    this.detail = new OpDetail(facts);
    this.field = h("input", { type: "search", id: "op-search", placeholder: "op or type",
      size: 32, spellcheck: "false" });
    this.field.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => {
        this.context.change({ q: this.field.value });
        this.#filter(this.#side, this.field.value);
      }, SEARCH_MS);
    });
    this.buttons = ["", ...this.sides].map((side) => h("button", {
      type: "button", onclick: () => {
        this.context.change({ side });
        this.#filter(side, this.#search);
      },
    }, { "": "All", host: "Host", device: "Devices" }[side] ?? side));
    this.status = h("span", { class: "quiet", role: "status" });
    this.table = new DataTable({
      label: "Ops", columns: columns(this.sides.length > 1, answer.has_memory), sort: sort || "-self_ps",
      height: "max(20rem, calc(100vh - 17rem))",
      onSort: (sort) => this.context.change({ sort }),
      isChosen: (row) => row === this.#chosen,
      onChoose: (row) => this.#pick(row),
      nothing: WORDING.ops.nothing,
    });
    const filter = new StepFilter(facts, answer.steps, chooseSteps, "", answer);
    this.element = h("div", { class: "stack" },
      filter.element, this.pictures.element,
      h("div", { class: "row-of" },
        this.sides.length > 1 && h("div", { class: "row-of tight", role: "group",
          "aria-label": "Side" }, ...this.buttons),
        h("label", { for: "op-search" }, "Search"), this.field, this.status,
        exportMenu({ name: `${this.context.session}_ops`, rows: () => rowsOf(this.table),
          json: () => answer, command: () => toolCommand(this.context, "op_time",
            { step: answer.steps?.step_id ?? null,
              last: answer.steps && answer.steps.steps > 1 ? answer.steps.last_id : null,
              plane: answer.plane }) })),
      h("div", { class: "with-detail" }, this.table.element, this.detail.element));
  }

  /** @param {Params} params */
  update(params) {
    // What is still being typed belongs to the address before.
    clearTimeout(this.#timer);
    this.field.value = params["q"] ?? "";
    this.#within = this.pictures.show(this.ops, params);
    this.#filter(params["side"] ?? "", params["q"] ?? "");
    const name = params["op"], side = params["side_of"] ?? params["side"];
    const op = name ? this.ops.find((one) => one.op === name && (!side || one.side === side)) : null;
    if (op && op !== this.#chosen) {
      const place = this.table.rows.indexOf(op);
      if (place >= 0) this.table.reveal(place);
    }
    this.#choose(op ?? null);
  }

  destroy() {
    clearTimeout(this.#timer);
    this.detail.destroy();
    this.pictures.destroy();
  }

  /** The reader chose it. @param {Op} op */
  #pick(op) {
    this.context.change({ op: op.op, side_of: this.sides.length > 1 ? op.side : null });
    const place = this.table.rows.indexOf(op);
    if (place >= 0) this.table.reveal(place);
    this.#choose(op);
  }

  /** @param {Op | null} op */
  #choose(op) {
    if (op === this.#chosen) return;
    this.#chosen = op;
    this.pictures.select(op);
    this.table.refresh();
    this.detail.show(op);
  }

  /**
   * @param {string} side
   * @param {string} search
   */
  #filter(side, search) {
    this.#side = this.sides.includes(side) ? side : "";
    this.#search = search;
    const text = search.toLowerCase();
    const result = this.ops.filter((op) => (!this.#side || op.side === this.#side)
      && (!this.#within || this.#within.has(op))
      && (!text || op.op.toLowerCase().includes(text)
        || (op.op_type ?? "").toLowerCase().includes(text)));
    ["", ...this.sides].forEach((one, place) =>
      this.buttons[place]?.setAttribute("aria-pressed", String(one === this.#side)));
    this.table.setRows(result);
    const own = result.reduce((sum, op) => sum + op.self_ps, 0);
    const isBoth = this.sides.length > 1 && !this.#side;
    const over = isBoth ? "both" : (this.#side || this.sides[0]) === "device" ? "device" : "host";
    this.status.textContent = worded(WORDING.ops.total,
      { ops: counted(result.length, "op"), self: time(own), over: WORDING.ops.over[over] });
  }
}

/**
 * @param {boolean} withSide
 * @param {boolean} withMemory
 * @returns {import("../../core/table.js").Column[]}
 */
function columns(withSide, withMemory) {
  return [
    { key: "op", title: "Op", width: "minmax(14rem, 3fr)" },
    { key: "op_type", title: "Type", width: "minmax(7rem, 1fr)" },
    ...(withSide ? [/** @type {const} */ ({ key: "side", title: "Side", width: "4.5rem" })] : []),
    { key: "self_ps", title: "Self time", kind: "time", width: "7rem",
      help: "without the ops that ran in it" },
    ...shareColumns(withSide),
    { key: "total_ps", title: "Total", kind: "time", width: "6.5rem",
      help: "from begin to end, what it called included" },
    { key: "occurrences", title: "Runs", kind: "count", width: "5.5rem" },
    ...(withMemory ? /** @type {const} */ ([
      { key: "peak_live_bytes", title: "Live at most", kind: "bytes", width: "7.5rem",
        help: "of the buffers that it allocated, the most at once" },
      { key: "allocated_bytes", title: "Allocated", kind: "bytes", width: "7rem",
        help: "in all its buffers together" },
    ]) : []),
    { key: "mean_ps", title: "Mean", kind: "time", width: "6.5rem",
      unsorted: true, cell: (row) => time(row.total_ps / row.occurrences) },
    { key: "min_ps", title: "Shortest", kind: "time", width: "6.5rem" },
    { key: "median_ps", title: "Median", kind: "time", width: "6.5rem" },
    { key: "p95_ps", title: "95th perc.", kind: "time", width: "6.5rem",
      help: "of 20 runs 19 took no longer" },
    { key: "max_ps", title: "Longest", kind: "time", width: "6.5rem" },
  ];
}
