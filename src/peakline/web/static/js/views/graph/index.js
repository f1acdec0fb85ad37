/** The graph: scopes that open in place, search, paths, details, and a program's schedule. */

import { isAbort } from "../../core/api.js";
import { toolCommand } from "../../core/command.js";
import { announce, fill, h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { count, counted, worded } from "../../core/format.js";
import { isTyping } from "../../core/gestures.js";
import { empty, failed, loading } from "../../core/states.js";
import { onTheme } from "../../core/theme.js";
import { modesOf } from "./colors.js";
import { detailsPanel } from "./details.js";
import { HELP } from "./keys.js";
import { pictureOf } from "./picture.js";
import { Schedule } from "./schedule.js";
import { MOST_MATCHES, Search } from "./search.js";
import { Stage } from "./stage.js";
import { MODES, ofGraph, paramsOf, pictureQuery, stateOf } from "./state.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./picture.js").Picture} Picture */

const PART = WORDING.graph.part;

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  return new GraphView(context);
}

class GraphView {
  help = HELP;
  /** @type {{graph: string, function: string | null, kind: string, nodes: number}[]} */
  #graphs = [];
  /** @type {Picture | null} */
  #picture = null;
  /** @type {Schedule | null} */
  #schedule = null;
  #asking = new AbortController();
  #detailing = new AbortController();
  /** @type {readonly string[]} */
  #tools = [];
  /** What is known of the selected item. @type {any} */
  #known = null;

  /** @param {import("../../shell/context.js").Context} context */
  constructor(context) {
    this.context = context;
    this.state = stateOf(context.params);
    this.bar = h("div", { class: "gv-bar" });
    this.panel = h("section", { class: "panel gv-panel", "aria-label": "Details", "aria-live": "polite",
      tabindex: 0 });
    this.stage = new Stage(context.signal, {
      select: (item) => this.#select(item),
      open: (item, isOpen) => this.#open(item, isOpen),
      leave: () => this.#leaveOnly(),
    });
    this.main = h("div", { class: "gv-main" });
    this.search = new Search({
      find: async (search, signal) => (await this.#ask({ view: "search", search, limit: MOST_MATCHES },
        AbortSignal.any([signal, context.signal]))).data,
      choose: (item) => this.#reveal(item),
      changed: (q) => this.#change({ q }),
    });
    this.body = h("div", { class: "gv-parts" }, this.main, this.panel);
    context.main.append(h("h1", { class: "unseen" }, "Graph"), this.bar, this.body);
    this.keys = (/** @type {KeyboardEvent} */ event) => this.#key(event);
    addEventListener("keydown", this.keys, { signal: context.signal });
    const ends = onTheme(() => this.#picture && this.stage.recolor(this.#mode(this.#picture)));
    context.signal.addEventListener("abort", ends);
    void this.#start();
  }

  /** @param {Record<string, string>} params */
  update(params) {
    const before = this.state;
    this.state = stateOf(params);
    this.search.set(this.state.q);
    const { graph, fn, schedule, color, item } = this.state;
    if (graph !== before.graph || fn !== before.fn || schedule !== before.schedule) this.#drawBar();
    if (color !== before.color && this.#picture) this.#recolor();
    void this.#show();
    if (item !== before.item) void this.#detail();
  }

  destroy() {
    this.#asking.abort();
    this.#detailing.abort();
    this.search.destroy();
    this.stage.destroy();
    this.#schedule?.destroy();
  }

  async #start() {
    fill(this.main, loading("Reading the graph"));
    try {
      this.#tools = (await this.context.document)?.tools ?? [];
      if (this.#tools.includes("graph_scopes")) void this.#show();
      const { data } = await this.#ask({ view: "graphs" });
      if (this.context.signal.aborted) return;
      this.#graphs = data.graphs;
      if (!data.default) {
        this.#asking.abort();
        this.body.replaceChildren(empty("No graph", WORDING.graph.none));
        return;
      }
      if (this.state.graph === null) {
        this.state = { ...this.state, graph: data.default.graph, fn: this.state.fn ?? data.default.function };
      }
      this.#drawBar();
      this.search.set(this.state.q);
    } catch (error) {
      if (isAbort(error)) return;
      this.#asking.abort();
      fill(this.main, failed(error, () => void this.#start()));
      return;
    }
    await this.#detail();
  }

  #drawBar() {
    const { graph, fn, schedule } = this.state;
    const isProgram = this.#graphs.some((one) => one.graph === graph && one.kind === "hlo");
    const key = (/** @type {string | null} */ of, /** @type {string | null} */ inside) => JSON.stringify([of, inside]);
    const picker = h("select", { "aria-label": "Graph" }, ...this.#graphs.map((one) =>
      h("option", { value: key(one.graph, one.function),
        selected: one.graph === graph && one.function === fn },
      `${one.function ? `  ${one.function}` : one.graph || "the graph"} (${counted(one.nodes, "node")})`)));
    picker.addEventListener("change", () => {
      const [chosen, inside] = JSON.parse(picker.value);
      this.#change({ graph: chosen, fn: inside, open: null, item: null, only: null }, true);
      this.#drawBar();
      void this.#show();
      void this.#detail();
    });
    const mode = (/** @type {string} */ title, /** @type {boolean} */ wanted) =>
      h("button", { type: "button", "aria-pressed": String(schedule === wanted), onclick: () => {
        if (this.state.schedule === wanted) return;
        this.#change({ schedule: wanted }, true);
        this.#drawBar();
        void this.#show();
      } }, title);
    this.colors = h("select", { "aria-label": "Colors" });
    this.colors.addEventListener("change", () => {
      this.#change({ color: /** @type {import("./colors.js").Mode} */ (this.colors?.value) });
      this.#recolor();
    });
    this.colorLabel = h("label", {}, "Colors", this.colors);
    fill(this.bar, this.#graphs.length > 1 && h("label", {}, "Graph", picker), this.search.element,
      isProgram && h("div", { class: "gv-group", role: "group", "aria-label": "Mode" },
        mode("Graph", false), mode("Schedule", true)),
      !schedule && this.colorLabel, !schedule && this.#menu());
    this.#drawColors();
  }

  #menu() {
    return exportMenu({
      name: "graph",
      rows: () => {
        const items = this.#picture?.items ?? [];
        const columns = /** @type {(keyof import("./picture.js").Item)[]} */ (["id", "kind", "label", "name",
          "op", "device", "nodes", "time_ps", "runs", "peak_bytes"]);
        return { columns, rows: items.map((item) => columns.map((name) => item[name])) };
      },
      json: async () => (await this.#ask(pictureQuery(this.state))).data,
      picture: () => this.stage.svg,
      command: () => this.#command(pictureQuery(this.state)),
    });
  }

  /** The command that gives what the service answers to a question. @param {Record<string, any>} query */
  #command(query) {
    const { graph, fn } = this.state;
    return toolCommand(this.context, "graph_scopes", { graph, function: fn, ...query });
  }

  #drawColors() {
    if (!this.#picture || !this.colors) return;
    const modes = modesOf(this.#picture), chosen = this.#mode(this.#picture);
    fill(this.colors, ...modes.map((mode) =>
      h("option", { value: mode, selected: mode === chosen }, MODES[mode])));
    if (this.colorLabel) this.colorLabel.hidden = modes.length < 2;
  }

  #recolor() {
    if (!this.#picture) return;
    this.stage.recolor(this.#mode(this.#picture));
    this.#drawColors();
  }

  /** @param {Picture} picture @returns {import("./colors.js").Mode} */
  #mode(picture) {
    const modes = modesOf(picture), { color } = this.state;
    return color && modes.includes(color) ? color : modes.includes("time") ? "time" : "category";
  }

  /** @param {{center?: number, keep?: number}} [where] */
  async #show({ center, keep } = {}) {
    this.#asking.abort();
    const asking = this.#asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, this.context.signal]);
    if (this.state.schedule) {
      await this.#showSchedule(signal);
      return;
    }
    this.#schedule?.destroy();
    this.#schedule = null;
    if (this.#picture && !this.stage.element.isConnected) fill(this.main, this.stage.element);
    this.stage.setBusy(true);
    try {
      const query = pictureQuery(this.state);
      let picture = pictureOf((await this.#ask({ ...query, quick: true }, signal)).data);
      await this.#draw(picture, signal, { center, keep });
      if (picture.sizes_left_out) {
        picture = pictureOf((await this.#ask(query, signal)).data);
        if (picture.has_sizes) await this.#draw(picture, signal, {});
      }
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) {
        this.stage.forget();
        fill(this.main, failed(error, () => void this.#show()));
      }
    }
  }

  /**
   * @param {Picture} picture
   * @param {AbortSignal} signal
   * @param {{center?: number | undefined, keep?: number | undefined}} where
   */
  async #draw(picture, signal, where) {
    if (signal.aborted) return;
    this.#picture = picture;
    if (!this.stage.element.isConnected) fill(this.main, this.stage.element);
    this.#drawColors();
    const drawn = await this.stage.show(picture, this.#mode(picture), this.state.item, where);
    if (!drawn || signal.aborted) return;
    fill(this.stage.note, ...this.#notes(picture));
    if (this.#known?.item === this.state.item) this.#drawDetail(this.#known);
    this.stage.setBusy(false);
  }

  /** @param {Picture} picture @returns {(Node | string)[]} */
  #notes(picture) {
    const { only } = this.state;
    const notes = [];
    if (only) {
      const of = picture.items.find((item) => item.id === only.item);
      notes.push(`${PART[only.way]} ${of?.name ?? "a node"}`, picture.more
        ? worded(WORDING.graph.left_out, { what: counted(picture.more, "more node") }) : "",
      h("button", { type: "button", onclick: () => this.#leaveOnly() }, "Whole graph"));
    } else {
      notes.push(`${counted(picture.items.length, "item")} for ${counted(picture.nodes, "node")} `
        + `and ${counted(picture.edges_total, "edge")}`
        + (picture.nodes_inside ? worded(WORDING.graph.inside, { nodes: counted(picture.nodes_inside, "more node") }) : ""));
    }
    if (picture.refused.length) {
      notes.push(worded(WORDING.graph.closed, { scopes: counted(picture.refused.length, "scope"),
        most: count(picture.most_items) }));
    }
    if (picture.left_out) notes.push(worded(WORDING.graph.left_out, { what: counted(picture.left_out, "thin edge") }));
    return notes;
  }

  /** @param {AbortSignal} signal */
  async #showSchedule(signal) {
    this.stage.forget();
    this.#schedule?.destroy();
    const schedule = this.#schedule = new Schedule(
      async (query) => (await this.#ask({ view: "schedule", ...query }, this.context.signal)).data,
      (item) => this.#select(item), () => this.#command({ view: "schedule" }));
    fill(this.main, schedule.element);
    try {
      await schedule.show(this.state.item);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) fill(this.main, failed(error, () => void this.#show()));
    }
  }

  async #detail() {
    this.#detailing.abort();
    const detailing = this.#detailing = new AbortController();
    const { item } = this.state;
    this.#known = null;
    if (item === null) {
      fill(this.panel, h("h2", {}, "Nothing selected"), h("p", { class: "quiet" }, WORDING.graph.reading));
      return;
    }
    try {
      const signal = AbortSignal.any([detailing.signal, this.context.signal]);
      const { data } = await this.#ask({ view: "item", item }, signal);
      if (signal.aborted) return;
      this.#known = data;
      this.#drawDetail(data);
    } catch (error) {
      if (!isAbort(error)) fill(this.panel, failed(error, () => void this.#detail()));
    }
  }

  /** @param {any} data what is known of the selected item, of the view `item` */
  #drawDetail(data) {
    const hadFocus = this.panel.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).textContent : null;
    // The picture may still be on its way: it says what is open.
    const picture = this.#picture ?? /** @type {any} */ ({ ...data, items: [], time_ps: 0 });
    fill(this.panel, ...detailsPanel(this.context, data, { tools: this.#tools, picture }, {
      reveal: (one) => this.#reveal(one),
      open: (one, isOpen) => this.#open(one, isOpen),
      only: (way, one, depth = 1) => {
        this.#change({ only: { way, item: one, depth }, schedule: false }, true);
        this.#drawBar();
        void this.#show({ center: one });
      },
      functionLink: (name) => this.context.link("graph", { graph: this.state.graph ?? "", fn: name }),
    }));
    // Who pressed a button goes on from there, or from its successor.
    if (hadFocus !== null) {
      const buttons = [...this.panel.querySelectorAll("button")];
      (buttons.find((one) => one.textContent === hadFocus) ?? buttons[0] ?? this.panel).focus();
    }
  }

  /** @param {number} item */
  #select(item) {
    if (item === this.state.item) return;
    this.#change({ item });
    this.stage.select(item);
    void this.#detail();
  }

  /** @param {number} item @param {boolean} isOpen */
  #open(item, isOpen) {
    const opened = this.state.open ?? this.#picture?.opened ?? [];
    const open = isOpen ? [...new Set([...opened, item])] : opened.filter((one) => one !== item);
    const label = this.#picture?.items.find((one) => one.id === item)?.label ?? "scope";
    announce(`${label} ${isOpen ? "opened" : "closed"}`);
    const isShown = this.#picture?.items.some((one) => one.id === item);
    this.#change({ open, item, only: null }, true);
    this.stage.select(item);
    void this.#show(isShown ? { keep: item } : { center: item });
    void this.#detail();
  }

  /** Open what holds an item, and show it in the middle. @param {number} item */
  #reveal(item) {
    const isProgramOrder = this.state.schedule;
    const opened = this.state.open ?? this.#picture?.opened ?? [];
    this.#change({ item, open: opened, only: null, schedule: false }, true);
    if (isProgramOrder) this.#drawBar();
    void this.#show({ center: item });
    void this.#detail();
  }

  #leaveOnly() {
    const { only } = this.state;
    if (!only) return false;
    this.#change({ only: null }, true);
    void this.#show({ center: only.item });
    return true;
  }

  /** @param {Partial<State>} changes @param {boolean} [push] */
  #change(changes, push = false) {
    this.state = { ...this.state, ...changes };
    this.context.change(paramsOf(this.state), push);
  }

  /**
   * @param {Record<string, string | number | boolean | null>} query
   * @param {AbortSignal} [signal]
   */
  #ask(query, signal = this.context.signal) {
    return this.context.tool("graph_scopes",
      query["view"] === "graphs" ? query : ofGraph(this.state, query), signal);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") this.search.field.focus();
    else if (this.state.schedule || !this.stage.key(event)) return;
    event.preventDefault();
  }
}
