/** Ops: how often each ran and how long; one op's distribution, runs and kernels. */

import { fill, h } from "../../core/dom.js";
import { counted, time } from "../../core/format.js";
import { empty, failed, loading, notices } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { OpDetail } from "./op_detail.js";

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
 * @property {number} share of its side's self time
 */

const QUERY = "select * from op_stats order by self_ps desc";
const SEARCH_MS = 150;

/** @type {import("./index.js").MountPart} */
export function mountOps(facts, body, params, signal) {
  /** @type {Ops | null} */
  let shown = null;
  void load();
  return {
    update(changed) {
      params = changed;
      shown?.update(params);
    },
    destroy: () => shown?.destroy(),
  };

  async function load() {
    fill(body, loading("Adding up the ops"));
    try {
      const answer = await facts.sql(QUERY);
      if (signal.aborted) return;
      if (!answer.data.length) {
        fill(body, notices(answer), empty("No ops in this profile",
          "It records nothing that ran as an op of a framework: ",
          h("a", { href: facts.context.link("timeline") }, "the timeline"), " has all that ran."));
        return;
      }
      shown = new Ops(facts, withShares(answer.data), params["sort"] ?? "");
      fill(body, notices(answer), shown.element);
      shown.update(params);
    } catch (error) {
      if (!signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

class Ops {
  #side = "";
  #search = "";
  /** @type {Op | null} */
  #chosen = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {import("./facts.js").Facts} facts
   * @param {Op[]} ops
   * @param {string} sort
   */
  constructor(facts, ops, sort) {
    this.context = facts.context;
    this.ops = ops;
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
    this.told = h("span", { class: "quiet", role: "status" });
    this.table = new DataTable({
      label: "Ops", columns: columns(this.sides.length > 1), sort: sort || "-self_ps",
      height: "max(20rem, calc(100vh - 17rem))",
      onSort: (sort) => this.context.change({ sort }),
      isChosen: (row) => row === this.#chosen,
      onChoose: (row) => {
        this.context.change({ op: row.op, side_of: this.sides.length > 1 ? row.side : null });
        this.#choose(row);
      },
      nothing: "no op has that in its name or type",
    });
    this.element = h("div", { class: "stack" },
      h("div", { class: "row-of" },
        this.sides.length > 1 && h("div", { class: "row-of tight", role: "group",
          "aria-label": "Side" }, ...this.buttons),
        h("label", { for: "op-search" }, "Search"), this.field, this.told),
      h("div", { class: "with-detail" }, this.table.element, this.detail.element));
  }

  /** @param {Params} params */
  update(params) {
    // What is still being typed belongs to the address before.
    clearTimeout(this.#timer);
    this.field.value = params["q"] ?? "";
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
  }

  /** @param {Op | null} op */
  #choose(op) {
    if (op === this.#chosen) return;
    this.#chosen = op;
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
    const found = this.ops.filter((op) => (!this.#side || op.side === this.#side)
      && (!text || op.op.toLowerCase().includes(text)
        || (op.op_type ?? "").toLowerCase().includes(text)));
    ["", ...this.sides].forEach((one, place) =>
      this.buttons[place]?.setAttribute("aria-pressed", String(one === this.#side)));
    this.table.setRows(found);
    const own = found.reduce((sum, op) => sum + op.self_ps, 0);
    this.told.textContent = `${counted(found.length, "op")}, ${time(own)} of self time, summed over `
      + (this.#side === "device" ? "devices" : this.sides.length > 1 && !this.#side
        ? "threads and devices" : this.sides[0] === "device" ? "devices" : "threads");
  }
}

/**
 * @param {any[]} rows
 * @returns {Op[]}
 */
function withShares(rows) {
  /** @type {Record<string, number>} */
  const whole = {};
  for (const { side, self_ps } of rows) whole[side] = (whole[side] ?? 0) + self_ps;
  return rows.map((row) => ({ ...row, share: row.self_ps / Math.max(whole[row.side] ?? 0, 1) }));
}

/**
 * @param {boolean} withSide
 * @returns {import("../../core/table.js").Column[]}
 */
function columns(withSide) {
  return [
    { key: "op", title: "Op", width: "minmax(14rem, 3fr)" },
    { key: "op_type", title: "Type", width: "minmax(7rem, 1fr)" },
    ...(withSide ? [/** @type {const} */ ({ key: "side", title: "Side", width: "4.5rem" })] : []),
    { key: "self_ps", title: "Self time", kind: "time", width: "7rem",
      help: "without the ops that ran in it" },
    { key: "share", title: "Share", kind: "percent", width: "5rem",
      help: "of its side's self time" },
    { key: "total_ps", title: "Total", kind: "time", width: "6.5rem",
      help: "from begin to end, what it called included" },
    { key: "occurrences", title: "Runs", kind: "count", width: "5.5rem" },
    { key: "mean_ps", title: "Mean", kind: "time", width: "6.5rem",
      unsorted: true, cell: (row) => time(row.total_ps / row.occurrences) },
    { key: "min_ps", title: "Shortest", kind: "time", width: "6.5rem" },
    { key: "median_ps", title: "Median", kind: "time", width: "6.5rem" },
    { key: "p95_ps", title: "95th perc.", kind: "time", width: "6.5rem",
      help: "of 20 runs 19 took no longer" },
    { key: "max_ps", title: "Longest", kind: "time", width: "6.5rem" },
  ];
}
