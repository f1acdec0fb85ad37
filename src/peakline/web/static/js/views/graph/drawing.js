/** The picture: an SVG of boxes and lines, each box an element that keys and screen readers reach. */

import { fill, svg } from "../../core/dom.js";
import { bytes, count, counted, time } from "../../core/format.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { isHolder } from "./picture.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./picture.js").Item} Item */
/** @typedef {import("./picture.js").Edge} Edge */
/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./nested.js").Layout} Layout */
/** @typedef {import("./nested.js").Place} Place */
/** @typedef {import("./colors.js").Colors} Colors */

const NODE_PX = 38, LEAST_PX = 90, MOST_PX = 250, SIDES_PX = 26, SIGN_PX = 16;
const THIN_PX = 1, THICK_PX = 9;
const FONT = "12.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const NAME_PX = MOST_PX - SIDES_PX - SIGN_PX;

const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/**
 * How large each box is at least.
 * @param {Picture} picture
 * @returns {import("./nested.js").Box[]}
 */
export function boxesOf({ items }) {
  ruler.font = FONT;
  return items.map((item) => ({
    id: item.id, parent: item.parent, open: item.is_open, height: NODE_PX,
    width: Math.min(MOST_PX, Math.max(LEAST_PX, SIDES_PX + (isHolder(item) ? SIGN_PX : 0) + Math.max(
      ruler.measureText(item.label).width, 0.88 * ruler.measureText(second(item)).width))),
  }));
}

/**
 * What a box says below its name.
 * @param {Item} item
 */
function second(item) {
  if (!isHolder(item) || item.kind === "node") {
    return isHolder(item) ? `${item.op} · ${counted(item.nodes - 1, "node")} inside` : item.op ?? "";
  }
  return counted(item.nodes, "node");
}

/**
 * An item in one sentence.
 * @param {Item} item
 * @param {Picture} picture
 */
export function sentenceOf(item, picture) {
  const parts = [item.label, item.kind === "node" ? item.op : item.kind];
  if (isHolder(item)) parts.push(counted(item.nodes, "node"));
  if (picture.has_time) parts.push(time(item.time_ps));
  if (item.peak_bytes) parts.push(`${bytes(item.peak_bytes)} at the peak`);
  return parts.filter(Boolean).join(", ");
}

export class Drawing {
  /** @type {Map<number, SVGGElement>} */
  #boxes = new Map();
  /** @type {{path: SVGPathElement, edges: number[]}[]} */
  #lines = [];

  /**
   * @param {SVGGElement} content
   * @param {{picture: Picture, layout: Layout, colors: Colors, selected: number | null}} shown
   */
  constructor(content, { picture, layout, colors, selected }) {
    this.picture = picture;
    this.layout = layout;
    const most = Math.max(1, ...picture.edges.map((edge) => edge.bytes));
    const links = [...picture.edges, ...picture.inside];
    const clusters = svg("g"), lines = svg("g"), nodes = svg("g");
    for (const item of picture.items) {
      const place = layout.places.get(item.id);
      if (!place) continue;
      const box = this.#box(item, place, colors);
      this.#boxes.set(item.id, box);
      (item.is_open ? clusters : nodes).append(box);
    }
    for (const line of layout.lines) {
      const edges = line.edges.filter((edge) => edge < picture.edges.length);
      const own = edges.map((edge) => /** @type {Edge} */ (picture.edges[edge]));
      const known = own.reduce((sum, edge) => sum + edge.bytes, 0);
      const isControl = own.length > 0 && own.every((edge) => edge.controls === edge.edges);
      const width = picture.has_sizes && known
        ? Math.min(THICK_PX, THIN_PX + (THICK_PX - THIN_PX) * Math.sqrt(known / most)) : THIN_PX + 0.4;
      const path = svg("path", { class: `gv-edge${isControl ? " control" : ""}${own.length ? "" : " given"}`,
        d: curve(line.points), "stroke-width": width.toFixed(2) });
      lines.append(path);
      if (line.end) lines.append(svg("path", { class: "gv-tip", d: arrow(line.points, width) }));
      this.#lines.push({ path, edges: line.edges });
      const wide = svg("path", { class: "gv-hit", d: curve(line.points) });
      wide.addEventListener("pointermove", (event) =>
        showTip(event.clientX, event.clientY, this.#edgeLines(own, links, line.edges)));
      wide.addEventListener("pointerleave", hideTip);
      lines.append(wide);
    }
    fill(content, clusters, lines, nodes);
    this.select(selected);
  }

  /** @param {number} id */
  box(id) {
    return this.#boxes.get(id);
  }

  /**
   * Mark an item and the lines at it; the one that Tab reaches is that, else the first.
   * @param {number | null} id
   */
  select(id) {
    const first = id !== null && this.#boxes.has(id) ? id : this.picture.items[0]?.id;
    for (const [number, box] of this.#boxes) {
      box.classList.toggle("selected", number === id);
      box.setAttribute("aria-current", String(number === id));
      box.setAttribute("tabindex", number === first ? "0" : "-1");
    }
    const links = [...this.picture.edges, ...this.picture.inside];
    for (const { path, edges } of this.#lines) {
      const isNear = id !== null && edges.some((edge) =>
        links[edge]?.source === id || links[edge]?.target === id);
      path.classList.toggle("near", isNear);
    }
  }

  /**
   * The edges at an item, those with most bytes first: places in the picture's list.
   * @param {number} id
   */
  edgesAt(id) {
    const { edges } = this.picture;
    return edges.map((_, place) => place)
      .filter((place) => edges[place]?.source === id || edges[place]?.target === id)
      .sort((one, other) => (edges[other]?.bytes ?? 0) - (edges[one]?.bytes ?? 0) || one - other);
  }

  /**
   * Mark an edge, or none; what the tip says of it, and its line.
   * @param {number | null} place in the picture's list
   * @returns {{lines: string[], path: SVGPathElement | undefined} | null}
   */
  chooseEdge(place) {
    let path;
    for (const line of this.#lines) {
      const isIt = place !== null && line.edges.includes(place);
      line.path.classList.toggle("chosen", isIt);
      if (isIt) path ??= line.path;
    }
    const edge = place === null ? undefined : this.picture.edges[place];
    return edge ? { lines: this.#edgeLines([edge], [], []), path } : null;
  }

  /**
   * @param {Item} item
   * @param {Place} place
   * @param {Colors} colors
   */
  #box(item, { x, y, width, height }, colors) {
    const fillOf = colors.of(item);
    const label = fitted(item.label, item.is_open ? width - SIDES_PX - 10 : NAME_PX);
    const mix = item.is_open ? [] : colors.mix(item);
    let done = 0;
    const strip = mix.map(({ color, share }) => {
      const part = svg("rect", { x: done, y: height - 5, width: share * width, height: 5, fill: color });
      done += share * width;
      return part;
    });
    return svg("g", {
      class: `gv-box ${item.kind}${item.is_open ? " open" : ""}${isHolder(item) ? " holder" : ""}`,
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, role: "button", tabindex: -1,
      "aria-label": sentenceOf(item, this.picture),
      "aria-expanded": isHolder(item) ? String(item.is_open) : null, "data-item": item.id,
    },
    svg("title", {}, item.name ?? item.label),
    svg("rect", { class: "gv-body", width, height, rx: item.kind === "node" && !isHolder(item) ? 9 : 3 }),
    fillOf && svg("rect", { class: "gv-tint", width, height, fill: fillOf.color,
      "fill-opacity": fillOf.opacity, rx: item.kind === "node" && !isHolder(item) ? 9 : 3 }),
    isHolder(item) ? strip : [],
    isHolder(item) && svg("text", { class: "gv-sign", x: 8, y: 17, "aria-hidden": "true" },
      item.is_open ? "−" : "+"),
    svg("text", { class: "gv-name", x: item.is_open ? 22 : width / 2 + (isHolder(item) ? SIGN_PX / 2 : 0),
      y: 17, "text-anchor": item.is_open ? "start" : "middle" }, label),
    !item.is_open && svg("text", { class: "gv-more", x: width / 2 + (isHolder(item) ? SIGN_PX / 2 : 0), y: 30, "text-anchor": "middle" },
      fitted(second(item), NAME_PX)));
  }

  /**
   * @param {Edge[]} edges
   * @param {{source: number, target: number}[]} links
   * @param {number[]} places
   */
  #edgeLines(edges, links, places) {
    const name = (/** @type {number} */ id) =>
      this.picture.items.find((item) => item.id === id)?.label ?? "";
    const [first] = places.map((place) => links[place]);
    if (!edges.length) {
      return [first ? `${name(first.source)} → ${name(first.target)}` : "",
        WORDING.graph.of_body];
    }
    const many = edges.reduce((sum, edge) => sum + edge.edges, 0);
    const controls = edges.reduce((sum, edge) => sum + edge.controls, 0);
    const known = edges.reduce((sum, edge) => sum + edge.bytes, 0);
    const unknown = edges.reduce((sum, edge) => sum + edge.unknown, 0);
    const [only] = edges;
    const lines = [edges.length === 1 && only ? `${name(only.source)} → ${name(only.target)}`
      : counted(many, "edge")];
    if (many - controls > 0) {
      lines.push(`${counted(many - controls, "tensor")}${this.picture.has_sizes && unknown < many - controls
        ? `, ${bytes(known)}` : ""}${unknown ? `, ${count(unknown)} of unknown size` : ""}`);
    }
    if (edges.length === 1 && only?.shape) lines.push(many > 1 ? `largest ${only.shape}` : only.shape);
    if (controls) lines.push(`${counted(controls, "edge")} that only order${controls === 1 ? "s" : ""}`);
    return lines;
  }
}

/**
 * A text cut where it would be wider.
 * @param {string} text
 * @param {number} width
 */
function fitted(text, width) {
  ruler.font = FONT;
  if (ruler.measureText(text).width <= width) return text;
  let most = text.length;
  while (most > 4 && ruler.measureText(shortened(text, most)).width > width) most -= 1 + (most >> 5);
  return shortened(text, most);
}

/** @param {string} text @param {number} most */
function shortened(text, most) {
  const end = Math.floor(most * 0.6);
  return `${text.slice(0, most - end)}…${text.slice(text.length - end)}`;
}

/**
 * A line through the middle of each piece, bent at its points.
 * @param {[number, number][]} points
 */
function curve(points) {
  const [first, ...rest] = points;
  if (!first) return "";
  return rest.reduce((path, here, place) => {
    const next = rest[place + 1];
    if (!next) return `${path}L${at(here)}`;
    return `${path}Q${at(here)} ${at([(here[0] + next[0]) / 2, (here[1] + next[1]) / 2])}`;
  }, `M${at(first)}`);
}

/** @param {[number, number][]} points @param {number} width */
function arrow(points, width) {
  const [x, y] = points[points.length - 1] ?? [0, 0];
  const [fromX, fromY] = points[points.length - 2] ?? [x, y - 1];
  const far = Math.hypot(x - fromX, y - fromY) || 1;
  const [dx, dy] = [(x - fromX) / far, (y - fromY) / far];
  const long = 6 + width, wide = 3 + width * 0.6;
  return `M${at([x, y])}L${at([x - dx * long - dy * wide, y - dy * long + dx * wide])}`
    + `L${at([x - dx * long + dy * wide, y - dy * long - dx * wide])}Z`;
}

/** @param {[number, number]} point */
function at([x, y]) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}
