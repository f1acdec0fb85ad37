/** What is live by scope, as an icicle: a scope is as wide as its bytes. */

import { fill, h } from "../../core/dom.js";
import { bytes, counted, percent } from "../../core/format.js";
import { drawPlot, dropPlot, plain } from "../../core/plot.js";
import { failed } from "../../core/states.js";
import { onTheme, palette } from "../../core/theme.js";

const ROW_PX = 42;
const HEAD_PX = 24;
const MOST_ROWS = 6;

/** @typedef {Record<string, any[]>} Scopes columns id, label, parent, path, bytes, count */

export class Icicle {
  /** @type {Scopes | null} */
  #scopes = null;
  #used = 0;
  #path = "";
  #isSeen = false;
  #isDrawn = false;

  /** @param {(path: string) => void} choose a scope's path; "" for all */
  constructor(choose) {
    this.choose = choose;
    this.plot = h("div", { class: "icicle-plot", role: "group" });
    this.note = h("p", { class: "quiet" });
    this.element = h("details", { class: "icicle", open: true },
      h("summary", {}, "By scope: as wide as its bytes; click one to see only what is in it"),
      this.note, this.plot);
    this.element.addEventListener("toggle", () => this.#draw());
    this.observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        this.#isSeen = true;
        this.observer.disconnect();
        this.#draw();
      }
    }, { rootMargin: "200px" });
    this.observer.observe(this.element);
    this.ends = onTheme(() => {
      this.#isDrawn = false;
      this.#draw();
    });
  }

  /**
   * @param {Scopes} scopes
   * @param {number | null} used bytes
   * @param {string} path of the scope that is chosen
   */
  show(scopes, used, path) {
    this.#scopes = scopes;
    this.#used = used ?? 0;
    this.#path = path;
    this.#isDrawn = false;
    this.#draw();
  }

  /** @param {string} path */
  select(path) {
    if (path === this.#path) return;
    this.#path = path;
    this.#isDrawn = false;
    this.#draw();
  }

  async destroy() {
    this.ends();
    this.observer.disconnect();
    await dropPlot(this.plot);
  }

  async #draw() {
    const scopes = this.#scopes;
    if (!scopes || this.#isDrawn || !this.#isSeen || !this.element.open) return;
    this.#isDrawn = true;
    const { id, label, parent, path, bytes: sizes, count } = scopes;
    const hasScopes = (id?.length ?? 0) > 2 && parent?.some((one, place) => place > 0 && one !== id?.[0]);
    // A negative rest has no width; without scopes the table says the same better.
    const isDrawable = hasScopes && sizes?.every((size) => size >= 0);
    this.element.hidden = !hasScopes;
    this.note.hidden = Boolean(isDrawable);
    this.plot.hidden = !isDrawable;
    if (!isDrawable) {
      this.note.textContent = "The records name more bytes than the allocator says are in use, so "
        + "that parts do not add up to a whole that can be drawn; the table has them all.";
      return;
    }
    const level = id?.find((_, place) => place > 0 && path?.[place] === this.#path && this.#path) ?? "";
    const texts = (sizes ?? []).map((size, place) =>
      `${bytes(size)}, ${percent(this.#used ? size / this.#used : 0)}`
      + (count?.[place] ? `, ${counted(count[place], "buffer")}` : ""));
    const colors = this.#colors();
    this.plot.setAttribute("aria-label", "What is live, by scope; the table by scope says the same");
    try {
      const drawn = await drawPlot(this.plot, [{
        type: "icicle", ids: id, labels: label?.map((text) => plain(text)), parents: parent,
        values: sizes, branchvalues: "total", level, sort: false,
        tiling: { orientation: "v" }, leaf: { opacity: 1 }, maxdepth: MOST_ROWS, pathbar: { visible: true, thickness: 20 },
        marker: { colors, line: { width: 1, color: palette()["panel"] } },
        text: texts, textinfo: "label+text", hovertemplate: "<b>%{label}</b><br>%{text}<extra></extra>",
        textfont: { size: 11, color: colors.map(inkOn) },
      }], { height: HEAD_PX + ROW_PX * this.#depth(level), margin: { l: 0, r: 0, t: 22, b: 0 },
        uniformtext: { minsize: 10, mode: "hide" } });
      drawn.removeAllListeners?.("plotly_icicleclick");
      drawn.on("plotly_icicleclick", (/** @type {any} */ event) => {
        const place = event.points?.[0]?.pointNumber ?? 0;
        this.choose(this.#chosen(place));
        return false;
      });
    } catch (error) {
      this.plot.hidden = true;
      this.note.hidden = false;
      fill(this.note, failed(error));
    }
  }

  /**
   * The path that a click on a part asks for: its own, and from the one that is chosen one up.
   * @param {number} place
   */
  #chosen(place) {
    const { id = [], parent = [], path = [] } = this.#scopes ?? {};
    const own = String(path[place] ?? "");
    if (String(id[place]).startsWith("rest:") || own === this.#path) {
      const above = id.indexOf(parent[place]);
      return above > 0 ? String(path[above] ?? "") : "";
    }
    return own;
  }

  /** How many rows there are from a part down. @param {string} level "" is everything */
  #depth(level) {
    const { id = [], parent = [] } = this.#scopes ?? {};
    /** @type {Map<string, number>} */
    const found = new Map();
    let most = 1;
    id.forEach((own, place) => {
      const above = found.get(parent[place]);
      const row = own === (level || id[0]) ? 1 : above === undefined ? 0 : above + 1;
      if (row) found.set(own, row);
      most = Math.max(most, row);
    });
    return Math.min(most, MOST_ROWS);
  }

  /** A color for each part: its outermost scope's. */
  #colors() {
    const { id = [], parent = [] } = this.#scopes ?? {};
    const colors = palette();
    /** @type {Map<string, string>} */
    const found = new Map();
    let tops = 0;
    return id.map((own, place) => {
      const above = parent[place];
      const one = place === 0 ? colors["raised"]
        : above === id[0] ? colors[`series-${(tops++ % 8) + 1}`] : found.get(above);
      found.set(own, one ?? "");
      return one ?? "";
    });
  }
}

/**
 * Black or white, whichever is read more easily on a color (by the relative luminance of WCAG 2).
 * @param {string} color `#rrggbb`
 */
function inkOn(color) {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  // Both are as good where the luminance is the square root of 1.05 times 0.05, less 0.05.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}
