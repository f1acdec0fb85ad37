/** The labels at the left of the lanes: planes and lines, which fold and have a menu. */

import { fill, h } from "../../core/dom.js";
import { counted } from "../../core/format.js";
import { onTwoLines, shortened, widthOf } from "./elide.js";
import { LaneMenu } from "./lane_menu.js";
import { PINNED, ROW_PX } from "./layout.js";

/** What stands beside a name: the fold's arrow, the menu, the edges. */
const BESIDE_PX = 50;
const TARGET_PX = 24;

/** @typedef {import("./layout.js").Entry} Entry */
/** @typedef {import("./layout.js").Line} Line */

export class Labels {
  #labelled = "";

  /**
   * @param {import("./layout.js").Layout} layout
   * @param {() => void} folded something was folded or unfolded
   * @param {() => void} arranged lines were moved, pinned or hidden
   * @param {(host: string) => void} remove a host from the timeline
   */
  constructor(layout, folded, arranged, remove) {
    this.layout = layout;
    this.remove = remove;
    this.folded = folded;
    this.arranged = arranged;
    this.menu = new LaneMenu();
    this.element = h("div", { class: "tl-labels" });
    this.element.append(this.menu.element);
    this.list = h("div", { class: "tl-label-list" });
    this.element.append(this.list);
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
    const width = this.element.clientWidth;
    const key = entries.map((entry, place) =>
      `${entry.plane}/${entry.part ?? ""}/${entry.line?.line ?? ""}/${entry.rows}/${tops[place]}`).join() + layout.folded + width;
    if (key === this.#labelled) return;
    this.#labelled = key;
    const focused = document.activeElement?.id ?? "";
    const isOurs = focused.startsWith("tl-fold-") || focused.startsWith("tl-menu-");
    fill(this.list, entries.map((entry, place) =>
      entry.line ? this.#lineLabel(entry, tops[place] ?? 0, width)
        : entry.part !== undefined ? this.#partLabel(entry, entry.part, width) : this.#planeLabel(entry, width)));
    if (isOurs) document.getElementById(focused)?.focus();
  }

  /**
   * The head of a host among several.
   * @param {Entry} entry
   * @param {number} part
   * @param {number} width
   */
  #partLabel({ top, height }, part, width) {
    const { layout } = this;
    const { title, host } = layout.parts[part] ?? { title: "", host: "" };
    const isFolded = layout.isPartFolded(part);
    return h("div", { class: "tl-label tl-part",
      style: { transform: `translateY(${top}px)`, height: `${height - 2}px` } },
    h("button", {
      type: "button", class: "plain tl-plane", id: `tl-fold-h${part}`, "aria-expanded": String(!isFolded),
      title: title === host ? host : `${title}\n${host}`,
      onclick: () => {
        layout.togglePart(part);
        this.folded();
      },
    }, h("span", { "aria-hidden": "true" }, isFolded ? "▸" : "▾"),
    h("span", { class: "name" }, shortened(title, width - BESIDE_PX, layout.parts.map((one) => one.title), 600))),
    layout.parts.length > 1 && h("button", { type: "button", class: "plain tl-more", "aria-label": `Remove ${title}`,
      title: "remove from the timeline", onclick: () => this.remove(host) }, "×"));
  }

  /**
   * @param {Entry} entry
   * @param {number} width
   */
  #planeLabel({ plane: place, top, height }, width) {
    const { layout } = this;
    const plane = layout.planes[place];
    const isFolded = layout.isPlaneFolded(place), isPinned = place === PINNED;
    const lines = counted(isPinned ? layout.arrangement.pinnedLines.length : plane?.lines.length ?? 0, "line");
    const facts = isPinned ? lines : `${lines}, ${counted(plane?.events ?? 0, "event")}`;
    const name = isPinned ? "Pinned" : plane?.short || "(no name)";
    const numbers = plane?.lines.map(({ line }) => line) ?? [];
    return h("div", { class: "tl-label", style: { transform: `translateY(${top}px)`, height: `${height - 2}px` } },
      h("button", {
        type: "button", class: "plain tl-plane", id: `tl-fold-p${place}`,
        "aria-expanded": String(!isFolded), title: `${name}\n${facts}`,
        onclick: () => {
          layout.togglePlane(place);
          this.folded();
        },
      }, h("span", { "aria-hidden": "true" }, isFolded ? "▸" : "▾"),
      h("span", { class: "name" }, shortened(name, width - BESIDE_PX, layout.planes.map((one) => one.short), 600)),
      h("span", { class: "unseen" }, `, ${facts}`)),
      !isPinned && this.#more(`p${place}`, name, [
        { text: "Hide", act: () => this.#arrange(() => layout.arrangement.hide(numbers)) },
        { text: "Show only this", act: () => this.#arrange(() => layout.arrangement.show(numbers)) },
        { text: "Show all lines", act: () => this.#arrange(() => layout.arrangement.reset()) },
      ]));
  }

  /**
   * @param {Entry} entry
   * @param {number} top
   * @param {number} width
   */
  #lineLabel({ line, height, plane }, top, width) {
    if (!line) return null;
    const { layout } = this;
    const isFolded = layout.isLineFolded(line.line);
    const facts = `${counted(line.events, "event")}, ${counted(line.rows, "row")}`;
    const name = nameOf(line);
    const hasFold = line.rows > 1;
    const beside = layout.planes[line.plane]?.lines.map(nameOf) ?? [];
    // On two lines, where the rows leave the room; else what fits on one.
    const isTall = height > 2 * ROW_PX;
    const room = width - BESIDE_PX;
    const [first, second] = isTall ? onTwoLines(name, room) : [shortened(name, room, beside), ""];
    const isWhole = first + second === name || `${first} ${second}` === name;
    // What is cut off would say less than nothing.
    const fitting = [facts, counted(line.events, "event"), ""].find((one) => widthOf(one) <= room);
    const isRoomy = height > 3 * ROW_PX;
    const plain = plane === PINNED ? `${layout.planes[line.plane]?.name}\n` : "";
    return h("div", { class: "tl-label",
      style: { transform: `translateY(${top}px)`, maxHeight: `${height}px` } },
    h(hasFold ? "button" : "div", {
      type: hasFold ? "button" : null, class: `${hasFold ? "plain " : ""}tl-line${isTall ? " tall" : ""}`,
      id: `tl-fold-${line.line}`, "aria-expanded": hasFold ? String(!isFolded) : null,
      title: `${plain}${name}\n${facts}${line.nativeId === null ? "" : `\nid ${line.nativeId}`}`,
      dataset: { line: String(line.line) },
      // As large as a finger, where the rows are.
      style: { minHeight: `${Math.min(height - 1, TARGET_PX)}px` },
      onclick: hasFold ? () => {
        layout.toggleLine(line.line);
        this.folded();
      } : null,
    }, h("span", { class: "arrow", "aria-hidden": "true" }, !hasFold ? "" : isFolded ? "▸" : "▾"),
    h("span", { class: "name", "aria-hidden": isWhole ? null : "true" }, h("span", {}, first),
      second && h("span", {}, second)),
    !isWhole && h("span", { class: "unseen" }, name),
    isRoomy && fitting !== facts && h("span", { class: "facts-below", "aria-hidden": "true" }, fitting),
    h("span", { class: isRoomy && fitting === facts ? "facts-below" : "unseen" }, facts)),
    this.#more(String(line.line), name, this.#items(line)));
  }

  /** @param {Line} line */
  #items({ line, plane }) {
    const { arrangement } = this.layout;
    const of = (/** @type {string} */ text, /** @type {() => void} */ act) =>
      ({ text, act: () => this.#arrange(act) });
    return [
      of(arrangement.pinned.includes(line) ? "Unpin" : "Pin to the top", () => arrangement.togglePin(line)),
      of("Move up", () => arrangement.move(line, -1)),
      of("Move down", () => arrangement.move(line, 1)),
      of("Hide", () => arrangement.hide([line])),
      of("Show only this", () => arrangement.show([line])),
      of("Show only this plane", () =>
        arrangement.show(this.layout.planes[plane]?.lines.map((one) => one.line) ?? [])),
      of("Show all lines", () => arrangement.reset()),
    ];
  }

  /**
   * @param {string} key
   * @param {string} name
   * @param {import("./lane_menu.js").Item[]} items
   */
  #more(key, name, items) {
    const button = h("button", { type: "button", class: "plain tl-more", id: `tl-menu-${key}`,
      "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": `Arrange ${name}`,
      onclick: () => this.menu.open(button, name, items) }, "⋯");
    return button;
  }

  /** @param {() => void} act */
  #arrange(act) {
    act();
    this.layout.place();
    this.#labelled = "";
    this.arranged();
  }
}

/** @param {Line} line */
function nameOf(line) {
  return line.name || (line.nativeId === null ? "(no name)" : `${line.nativeId}`);
}
