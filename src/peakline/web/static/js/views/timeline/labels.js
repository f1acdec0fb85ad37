/** The labels at the left of the lanes: planes and lines, which fold. */

import { fill, h } from "../../core/dom.js";
import { counted } from "../../core/format.js";
import { ROW_PX } from "./layout.js";

/** @typedef {import("./layout.js").Entry} Entry */

export class Labels {
  #labelled = "";

  /**
   * @param {import("./layout.js").Layout} layout
   * @param {() => void} folded something was folded or unfolded
   */
  constructor(layout, folded) {
    this.layout = layout;
    this.folded = folded;
    this.element = h("div", { class: "tl-labels" });
  }

  /**
   * Labels of what is in view, and of a little more; only when that changed.
   * @param {number} top
   * @param {number} height
   */
  draw(top, height) {
    const { layout } = this;
    const entries = layout.between(top - height / 2, top + 1.5 * height);
    // A line's label stays in view as long as one of its rows is.
    const tops = entries.map((entry) => Math.min(Math.max(entry.top, entry.line ? top : 0),
      entry.top + Math.max(0, entry.height - 2 * ROW_PX)));
    const key = entries.map((entry, place) =>
      `${entry.plane}/${entry.line?.line ?? ""}/${entry.rows}/${tops[place]}`).join() + layout.folded;
    if (key === this.#labelled) return;
    this.#labelled = key;
    const focused = document.activeElement?.id ?? "";
    fill(this.element, entries.map((entry, place) =>
      entry.line ? this.#lineLabel(entry, tops[place] ?? 0) : this.#planeLabel(entry)));
    if (focused.startsWith("tl-fold-")) document.getElementById(focused)?.focus();
  }

  /** @param {Entry} entry */
  #planeLabel({ plane: place, top, height }) {
    const { layout } = this;
    const plane = layout.planes[place];
    const isFolded = layout.isPlaneFolded(place);
    const lines = counted(plane?.lines.length ?? 0, "line");
    const facts = `${lines}, ${counted(plane?.events ?? 0, "event")}`;
    return h("button", {
      type: "button", class: "plain tl-plane", id: `tl-fold-p${place}`,
      "aria-expanded": String(!isFolded), title: `${plane?.name}\n${facts}`,
      style: { transform: `translateY(${top}px)`, height: `${height - 2}px` },
      onclick: () => {
        layout.togglePlane(place);
        this.folded();
      },
    }, h("span", { "aria-hidden": "true" }, isFolded ? "▸" : "▾"),
    h("span", { class: "name" }, plane?.name || "(no name)"), h("span", { class: "unseen" }, `, ${facts}`),
    isFolded && h("span", { class: "quiet" }, lines));
  }

  /**
   * @param {Entry} entry
   * @param {number} top
   */
  #lineLabel({ line, height }, top) {
    if (!line) return null;
    const { layout } = this;
    const isFolded = layout.isLineFolded(line.line);
    const facts = `${counted(line.events, "event")}, ${counted(line.rows, "row")}`;
    const name = line.name || (line.nativeId === null ? "(no name)" : `${line.nativeId}`);
    const hasFold = line.rows > 1;
    return h(hasFold ? "button" : "div", {
      type: hasFold ? "button" : null, class: hasFold ? "plain tl-line" : "tl-line",
      id: `tl-fold-${line.line}`, "aria-expanded": hasFold ? String(!isFolded) : null,
      title: `${name}\n${facts}${line.nativeId === null ? "" : `\nid ${line.nativeId}`}`,
      style: { transform: `translateY(${top}px)`, maxHeight: `${height}px` },
      onclick: hasFold ? () => {
        layout.toggleLine(line.line);
        this.folded();
      } : null,
    }, h("span", { class: "arrow", "aria-hidden": "true" }, !hasFold ? "" : isFolded ? "▸" : "▾"),
    h("span", { class: "name" }, name),
    h("span", { class: height > 2 * ROW_PX ? "facts-below" : "unseen" }, facts));
  }
}
