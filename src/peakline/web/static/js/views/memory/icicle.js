/** What is live by scope, as an icicle: a scope is as wide as its bytes. */

import { h } from "../../core/dom.js";
import { bytes, counted } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";

/** @typedef {Record<string, any[]>} Scopes columns id, label, parent, path, bytes, count */

export class LiveIcicle {
  /** @type {Scopes} */
  #scopes = {};

  /** @param {(path: string) => void} choose a scope's path; "" for all */
  constructor(choose) {
    this.icicle = new Icicle({
      label: "What is live, by scope; the table by scope says the same", text: bytes,
      choose: (id) => choose(this.#pathOf(id)),
    });
    this.note = h("p", { class: "quiet" }, "The records name more bytes than the allocator says are "
      + "in use, so that parts do not add up to a whole that can be drawn; the table has them all.");
    this.element = h("details", { class: "scopes", open: true },
      h("summary", {}, "By scope: as wide as its bytes; click one to see only what is in it"),
      this.note, this.icicle.element);
  }

  /**
   * @param {Scopes} scopes
   * @param {string} path of the scope that is chosen
   */
  show(scopes, path) {
    this.#scopes = scopes;
    const { id = [], label = [], parent = [], bytes: sizes = [], count = [] } = scopes;
    const hasScopes = id.length > 2 && parent.some((one, place) => place > 0 && one !== id[0]);
    // A negative rest has no width; without scopes the table says the same better.
    const isDrawable = hasScopes && sizes.every((size) => size >= 0);
    this.element.hidden = !hasScopes;
    this.note.hidden = isDrawable;
    this.icicle.element.hidden = !isDrawable;
    if (!isDrawable) return;
    this.icicle.show({
      id, label, parent, value: sizes, note: count.map((many) => (many ? counted(many, "buffer") : "")),
      isRest: id.map((one) => String(one).startsWith("rest:")),
    }, this.#idOf(path));
  }

  /** @param {string} path */
  select(path) {
    if (this.#scopes["id"]) this.icicle.select(this.#idOf(path));
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
