/** Beside the table of ops: where their time goes, as an icicle, and a roofline of what they cost. */

import { commandOf } from "../../core/command.js";
import { h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { time } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";
import { partOfOp, treeOf } from "./op_tree.js";
import { Roofline } from "./roofline.js";

/** @typedef {import("./ops_part.js").Op} Op */
/** @typedef {import("./op_tree.js").By} By */
/** @typedef {import("./index.js").Params} Params */

/** @type {readonly (readonly [By, string])[]} */
const CHOICES = [["scope", "By scope"], ["type", "By type"], ["op", "By op"]];

export class OpPictures {
  /** @type {Op[]} */
  #ops = [];
  /** @type {By} */
  #by = "scope";
  /** @type {import("./op_tree.js").OpTree | null} */
  #tree = null;
  #within = "";
  /** @type {Op | null} */
  #op = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("./roofline.js").Peaks} peaks
   * @param {(op: Op) => void} choose
   * @param {(within: Set<Op> | null) => void} filter only these are to be shown
   */
  constructor(context, peaks, choose, filter) {
    this.context = context;
    this.peaks = peaks;
    this.choose = choose;
    this.filter = filter;
    this.icicle = new Icicle({ label: "Self time of ops; the table says the same", text: time,
      choose: (id) => this.#chooseId(id), height: "20rem" });
    this.buttons = CHOICES.map(([by, title]) => ({ by, button: h("button", { type: "button",
      onclick: () => {
        this.context.change({ tree: by === "scope" ? null : by, within: null });
        this.#by = by;
        this.#draw("");
        this.filter(null);
      } }, title) }));
    this.roofline = new Roofline(choose);
    this.element = h("div", { class: "op-pictures" },
      h("section", { class: "panel stack", "aria-labelledby": "op-tree" },
        h("div", { class: "row-of" }, h("h2", { id: "op-tree" }, "Self time"),
          h("div", { class: "row-of tight", role: "group", "aria-label": "Parts of the picture" },
            ...this.buttons.map(({ button }) => button)),
          exportMenu({ name: `${context.session}_op_tree`, rows: () => this.#rows(),
            picture: () => this.icicle.picture(), command: () => commandOf(context, "ops") })),
        this.icicle.element),
      h("section", { class: "panel stack", "aria-labelledby": "roofline" },
        h("div", { class: "row-of" }, h("h2", { id: "roofline" }, "Roofline"),
          exportMenu({ name: `${context.session}_roofline`, json: () => peaks,
            picture: () => this.roofline.canvas })),
        this.roofline.element));
  }

  /**
   * @param {Op[]} ops
   * @param {Params} params
   * @returns {Set<Op> | null} the ops of the part that the address names; null: all
   */
  show(ops, params) {
    const by = CHOICES.find(([one]) => one === params["tree"])?.[0] ?? "scope";
    if (ops !== this.#ops) this.roofline.show(ops, this.peaks);
    if (ops !== this.#ops || by !== this.#by || !this.#tree) {
      this.#ops = ops;
      this.#by = by;
      this.#draw(params["within"] ?? "");
    } else if (this.#within !== (params["within"] ?? "")) {
      this.#within = params["within"] ?? "";
      this.icicle.select(this.#within);
    }
    return this.#opsOf(this.#within);
  }

  /** @param {Op | null} op */
  select(op) {
    this.#op = op;
    this.roofline.select(op);
    this.#mark();
  }

  #mark() {
    this.icicle.mark(this.#tree ? partOfOp(this.#tree, this.#op) : "");
  }

  destroy() {
    this.icicle.destroy();
    this.roofline.destroy();
  }

  /** @param {string} within the id of a part */
  #draw(within) {
    for (const { by, button } of this.buttons) {
      button.setAttribute("aria-pressed", String(by === this.#by));
    }
    this.#tree = treeOf(this.#ops, this.#by);
    this.#within = this.#tree.ops.has(within) ? within : "";
    this.icicle.show(this.#tree.tree, this.#within);
    this.#mark();
  }

  /** @param {string} id */
  #chooseId(id) {
    const isAll = id === this.#tree?.tree.id[0];
    this.#within = isAll ? "" : id;
    this.context.change({ within: isAll ? null : id });
    this.filter(this.#opsOf(this.#within));
    const [op, ...others] = this.#tree?.ops.get(id) ?? [];
    if (op && !others.length && this.#tree && partOfOp(this.#tree, op) === id) this.choose(op);
  }

  /** @param {string} id */
  #opsOf(id) {
    const own = id ? this.#tree?.ops.get(id) : undefined;
    return own ? new Set(own) : null;
  }

  #rows() {
    const tree = this.#tree?.tree;
    return { columns: ["part", "within", "self_ps"],
      rows: (tree?.id ?? []).map((_, place) => [tree?.label[place],
        tree?.label[tree.id.indexOf(tree.parent[place] ?? "")] ?? "", tree?.value[place]]) };
  }
}
