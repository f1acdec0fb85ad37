/** What is live, as an icicle: by the scopes of ops, or by call stacks, as wide as their bytes. */

import { h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { bytes, counted } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {Record<string, any[]>} Scopes columns id, label, parent, path, bytes, count */

export class LiveIcicle {
  /** @type {Scopes} */
  #scopes = {};

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {(path: string) => void} choose a scope's path; "" for all
   * @param {(tree: "scope" | "stack") => void} change what it is by
   */
  constructor(context, choose, change) {
    this.icicle = new Icicle({
      label: "What is live, as a tree; the table says the same in groups", text: bytes,
      height: "var(--live-height)",
      choose: (id) => {
        if (this.#kind === "scope") choose(this.#pathOf(id));
      },
    });
    this.note = h("p", { class: "quiet" });
    this.by = h("select", { onchange: () => change(this.by.value === "stack" ? "stack" : "scope") },
      h("option", { value: "scope" }, "scope"), h("option", { value: "stack" }, "Python stack"));
    this.element = h("section", { class: "stack scopes", "aria-label": "What is live, as an icicle" },
      h("div", { class: "row-of" }, h("label", {}, "Icicle by ", this.by), h("span", { class: "grow" }),
        exportMenu({ name: `${context.session}-icicle`, rows: () => ({
          columns: Object.keys(this.#scopes), rows: (this.#scopes["id"] ?? []).map((_, place) =>
            Object.values(this.#scopes).map((column) => column[place])) }),
        picture: () => this.icicle.picture() })),
      this.note, this.icicle.element);
  }

  /** @type {"scope" | "stack"} */
  #kind = "scope";

  /**
   * @param {Scopes} scopes
   * @param {string} path of the scope that is chosen
   * @param {"scope" | "stack"} kind
   * @param {boolean} hasStacks whether buffers have call stacks
   */
  show(scopes, path, kind, hasStacks) {
    this.#scopes = scopes;
    this.#kind = kind;
    this.by.value = kind;
    const { id = [], label = [], parent = [], bytes: sizes = [], count = [] } = scopes;
    const option = this.by.options[1];
    if (option) {
      option.disabled = !hasStacks;
      option.title = hasStacks ? "" : WORDING.memory.no_stacks;
      option.text = hasStacks ? "Python stack" : WORDING.memory.stacks_not_recorded;
    }
    const isDrawable = id.length > 0 && sizes.every((size) => size >= 0);
    this.note.hidden = isDrawable;
    this.note.textContent = id.length ? WORDING.memory.not_a_whole : WORDING.memory.no_sizes;
    this.icicle.element.hidden = !isDrawable;
    if (!isDrawable) return;
    this.icicle.show({
      id, label, parent, value: sizes, note: count.map((many) => (many ? counted(many, "buffer") : "")),
      isRest: id.map((one) => String(one).startsWith("rest:")),
    }, kind === "scope" ? this.#idOf(path) : "");
  }

  /** @param {string} path */
  select(path) {
    if (this.#scopes["id"] && this.#kind === "scope") this.icicle.select(this.#idOf(path));
  }

  destroy() {
    this.icicle.destroy();
  }

  /** @param {string} id */
  #pathOf(id) {
    const { id: all = [], path = [] } = this.#scopes;
    const place = all.indexOf(id);
    return place > 0 ? String(path[place] ?? "") : "";
  }

  /** @param {string} path */
  #idOf(path) {
    const { id = [], path: paths = [] } = this.#scopes;
    return path ? String(id[paths.indexOf(path)] ?? "") : "";
  }
}
