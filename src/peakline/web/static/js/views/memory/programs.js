/**
 * What compiled programs hold in memory: layers over the schedule, the peak as an icicle, and its
 * values, by HLO op, scope or source line. Each instruction leads to its node in the graph.
 */

import { isAbort } from "../../core/api.js";
import { REST } from "../../core/colors.js";
import { Surface } from "../../core/canvas.js";
import { fill, h } from "../../core/dom.js";
import { exportMenu, rowsOf } from "../../core/exporting.js";
import { bytes, count, counted, percent, worded } from "../../core/format.js";
import { Icicle } from "../../core/icicle.js";
import { failed, loading } from "../../core/states.js";
import { DataTable } from "../../core/table.js";
import { palette } from "../../core/theme.js";
import { hideTip, showTip } from "../../core/tooltip.js";
import { toolCommand } from "../../core/command.js";
import { colorOfLayer, colorsOfTree, paintProgram, placeAt, valueLayer } from "./program-picture.js";
import { PROGRAM_BY } from "./state.js";
import { WORDING } from "../../core/wording.js";

const MOST_ROWS = 5000;
/** @type {Record<string, string>} */
const FOUND_BY = WORDING.peak_found_by;

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./program-picture.js").ProgramAnswer} ProgramAnswer */

export class Programs {
  /** @type {ProgramAnswer | null} */
  #data = null;
  /** The colors of the parts of the icicle. @type {string[]} */
  #colors = [];
  #query = "";
  #asking = new AbortController();
  /** The row whose life is marked. @type {any} */
  #marked = null;
  /** How many rows are requested, where an instruction of the address is not among the first.
   * @type {number | null} */
  #limit = null;
  /** The instruction that was brought into view. @type {number | null} */
  #brought = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {() => Pick<State, "programs" | "program" | "pby" | "ppart" | "pitem">} state
   * @param {(changes: Partial<State>) => void} change
   * @param {boolean} isAlone whether the profile has nothing else about memory
   */
  constructor(context, state, change, isAlone) {
    this.context = context;
    this.state = state;
    this.isAlone = isAlone;
    this.canvas = h("canvas", { class: "program-chart", role: "img" });
    this.surface = new Surface(this.canvas, (on, width, height) => {
      if (this.#data) paintProgram(on, palette(), this.#data, width, height, this.#marked);
    });
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.program = h("select", { "aria-label": "Program", onchange: () =>
      change({ program: this.program.value, ppart: "", pitem: null }) });
    this.by = h("select", { "aria-label": "Programs by", onchange: () =>
      change({ pby: /** @type {State["pby"]} */ (this.by.value), ppart: "" }) },
      Object.entries(PROGRAM_BY).map(([name, text]) => h("option", { value: name }, `by ${text}`)));
    this.note = h("p", { class: "quiet" });
    this.wait = h("div");
    this.legend = h("ul", { class: "memory-legend program-legend", "aria-label": "Layers of the program" });
    this.chosen = h("p", { class: "quiet", role: "status" });
    this.icicle = new Icicle({ label: "What the program holds at its peak, as a tree", text: bytes,
      height: "20rem", color: (place) => this.#colors[place] ?? REST, choose: (id) => change({ ppart: this.#data?.tree["id"]?.[0] === id ? "" : id }) });
    this.table = new DataTable({
      label: "Values live at the program's peak", sort: "-bytes", height: "20rem",
      columns: [
        { key: "instruction", title: "Instruction", cell: (row) => this.#link(row) },
        { key: "opcode", title: "Opcode", width: "8rem" },
        { key: "bytes", title: "Bytes", kind: "bytes", width: "6rem" },
        { key: "kind", title: "Kind", width: "6.5rem" },
        { key: "start", title: "From", kind: "count", width: "4.5rem", help: "Place in the schedule of the first instruction that needs it" },
        { key: "end", title: "To", kind: "count", width: "4.5rem", help: "Place of the last one" },
        { key: "op_name", title: "Scope and op", width: "16rem" },
      ],
      onChoose: (row) => {
        const isMarked = this.#marked === row;
        this.#mark(isMarked ? null : row);
        this.#brought = isMarked ? null : row.item;
        change({ pitem: this.#brought });
      },
      isChosen: (row) => row === this.#marked,
      nothing: "nothing is live",
    });
    this.parts = h("div", { class: "stack" }, this.note, this.canvas, this.legend,
      h("div", { class: "between-parts" },
        h("div", { class: "stack" }, this.table.element),
        h("div", { class: "stack" }, h("div", { class: "row-of" }, h("span", { class: "grow" }), exportMenu({
          name: `${context.session}-program-tree`, json: () => this.#data?.tree,
          picture: () => this.icicle.picture(),
          command: () => toolCommand(context, "program_memory", this.#question()) })),
        this.icicle.element, this.chosen)));
    const menu = exportMenu({ name: `${context.session}-program-memory`, rows: () => rowsOf(this.table),
      json: () => this.#data, picture: () => this.canvas,
      command: () => toolCommand(context, "program_memory", this.#question()) });
    this.element = h("details", { class: "panel memory-programs", open: isAlone, ontoggle: () => {
      if (!isAlone && this.element.open !== this.state().programs) change({ programs: this.element.open });
    } }, h("summary", {}, h("h2", {}, "Compiled programs")),
      h("div", { class: "row-of" }, this.program, this.by, h("span", { class: "grow" }), menu),
      this.wait, this.parts);
  }

  destroy() {
    hideTip();
    this.#asking.abort();
    this.surface.destroy();
    this.icicle.destroy();
  }

  #question() {
    const { program, pby } = this.state();
    return { program, by: pby, ...(this.#limit === null ? {} : { limit: this.#limit }) };
  }

  /** What the address says, where the part is open. */
  async show() {
    const isOpen = this.isAlone || this.state().programs;
    if (this.element.open !== isOpen) this.element.open = isOpen;
    if (!isOpen) return;
    const query = this.#question(), text = JSON.stringify(query);
    this.by.value = query.by;
    if (text !== this.#query) {
      this.#query = text;
      this.#asking.abort();
      this.#asking = new AbortController();
      if (!this.#data) fill(this.wait, loading("Reading compiled programs"));
      this.canvas.setAttribute("aria-busy", "true");
      try {
        const { data } = await this.context.tool("program_memory", query,
          AbortSignal.any([this.#asking.signal, this.context.signal]));
        fill(this.wait);
        this.#set(data);
      } catch (error) {
        if (isAbort(error)) return;
        this.#query = "";
        fill(this.wait, failed(error, () => void this.show()));
        return;
      }
      this.canvas.setAttribute("aria-busy", "false");
    }
    this.#showPart();
    this.#showItem();
  }

  /** @param {ProgramAnswer} data */
  #set(data) {
    this.#data = data;
    this.#marked = this.#brought = null;
    fill(this.program, data.programs.map(({ name, peak_bytes: peak }) => h("option", { value: name,
      selected: name === data.program }, `${name}, ${peak === null ? "not known" : bytes(peak)}`)));
    const { tree, reason } = data;
    const says = WORDING.programs, how = FOUND_BY[data.found_by ?? ""] ?? "";
    fill(this.note, data.peak_bytes === null ? `${reason}.` : worded(data.peak < 0 ? says.peak : says.peak_at,
      { peak: bytes(data.peak_bytes), how, place: count(data.peak),
        instructions: counted(data.instructions, "instruction") })
      + (reason ? ` ${worded(says.no_layers, { reason })}` : ""), " ",
    data.program !== null && h("a", { href: this.context.link("graph",
      { graph: data.program, mode: "schedule" }) }, "The schedule in the graph"));
    this.canvas.hidden = this.legend.hidden = !data.layers.length;
    this.canvas.setAttribute("aria-label", worded(says.label,
      { by: PROGRAM_BY[this.state().pby], peak: bytes(data.peak_bytes) }));
    fill(this.legend, data.layers.map((layer, place) => h("li", { class: "chip" },
      h("span", { class: "swatch", "aria-hidden": "true", style: { backgroundColor:
        `var(--${colorOfLayer(layer, place)})` } }),
      h("span", { class: "name", title: layer.key }, valueLayer(layer)),
      h("span", { class: "quiet" }, bytes(layer.peak_bytes)))).reverse());
    this.table.setRows(data.rows);
    const { id = [], label = [], parent = [], bytes: sizes = [], count: many = [] } = tree;
    this.icicle.element.hidden = !id.length;
    if (id.length) {
      this.#colors = colorsOfTree(data, this.state().pby);
      this.icicle.show({ id, label, parent, value: sizes, note: many.map((one) => counted(one, "value")),
        isRest: id.map((one) => String(one).startsWith("rest:")) }, this.state().ppart);
    }
    this.surface.redraw();
  }

  /** The chosen part of the icicle; of an instruction the way to its node. */
  #showPart() {
    const data = this.#data, { ppart } = this.state();
    if (!data) return;
    const place = (data.tree["id"] ?? []).indexOf(ppart);
    this.icicle.select(place >= 0 ? ppart : "");
    const name = data.tree["label"]?.[place];
    const row = data.rows.find(({ instruction }) => instruction && String(name ?? "").split("/").pop() === instruction);
    fill(this.chosen, place > 0 && row ? ["Chosen: ", this.#link(row), ", ", bytes(row.bytes),
      row.source_file ? `, ${row.source_file}:${row.source_line}` : ""] : "");
  }

  /** Mark the value of the address's instruction; bring it into view where a link leads to it. */
  #showItem() {
    const data = this.#data, { pitem } = this.state();
    if (!data || pitem === this.#brought) return;
    const place = pitem === null ? -1 : this.table.rows.findIndex(({ item }) => item === pitem);
    if (pitem !== null && place < 0 && data.rows_total > data.rows.length && this.#limit === null) {
      this.#limit = MOST_ROWS;
      void this.show();
      return;
    }
    this.#brought = pitem;
    this.#mark(place < 0 ? null : this.table.rows[place]);
    if (place < 0) return;
    this.table.reveal(place);
    this.element.scrollIntoView({ block: "start" });
  }

  /** @param {any} row */
  #link(row) {
    if (row.item === null || !this.#data?.program) return row.instruction ?? "(no instruction)";
    return h("a", { href: this.context.link("graph", { graph: this.#data.program, item: row.item }),
      title: `${row.instruction} in the graph` }, row.instruction);
  }

  /** @param {any} row */
  #mark(row) {
    this.#marked = row;
    this.table.refresh();
    this.surface.redraw();
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const data = this.#data;
    if (!data) return;
    const result = placeAt(data, this.surface.width, this.surface.height, event.offsetX, event.offsetY);
    if (!result) {
      hideTip();
      return;
    }
    const { at, layer } = result, live = data.live_bytes[at] ?? 0;
    const own = layer >= 0 ? data.layers[layer] : null, size = data.bytes[layer]?.[at] ?? 0;
    showTip(event.clientX, event.clientY, [`place ${count(data.place[at])}: ${bytes(live)} live`,
      ...(own ? [`${valueLayer(own)}: ${bytes(size)}, ${percent(live ? size / live : 0)}`] : [])]);
  }
}
