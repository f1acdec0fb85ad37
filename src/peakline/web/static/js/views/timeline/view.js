/** The timeline of one profile: lanes, what is above and below them, and what they share. */

import { fill, h } from "../../core/dom.js";
import { count, counted, time } from "../../core/format.js";
import { failed, notices } from "../../core/states.js";
import { onTheme } from "../../core/theme.js";
import { hideTip } from "../../core/tooltip.js";
import { Viewport } from "../../core/viewport.js";
import { isAbort } from "../../core/api.js";
import { Arrows } from "./arrows.js";
import { askTimeline, stackOf } from "./ask.js";
import { AxisBand, OverviewBand } from "./bands.js";
import { Bar } from "./bar.js";
import { Chosen } from "./chosen.js";
import { Counters } from "./counters.js";
import { Findings } from "./findings.js";
import { Flags } from "./flags.js";
import { attachKeys } from "./keys.js";
import { labelEdge } from "./label_edge.js";
import { Lanes } from "./lanes.js";
import { Layout } from "./layout.js";
import { Legend } from "./legend.js";
import { Names } from "./names.js";
import { Navigation } from "./navigation.js";
import { Over } from "./over.js";
import { Panel } from "./panel.js";
import { Range } from "./range.js";
import { Search } from "./search.js";
import { Steps } from "./steps.js";
import { timelineExports } from "./taking.js";
import { Tips } from "./tips.js";

/** Findings are asked for at once where that is quick, else when their tab is opened. */
const EVENTS_OF_QUICK_FINDINGS = 1e6;
const OVERVIEW_ITEMS = 2e5;

/** @typedef {Record<string, string>} Params */

export class TimelineView {
  #isWaiting = false;
  #isDrawn = false;
  /** @type {number | null} where the pointer is, as a time */
  pointer = null;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {import("../../core/api.js").Answer<Record<string, any>>} answer of the view lanes, read
   * @param {import("./tiles.js").Tiles} tiles with the first one
   * @param {import("./hosts.js").Hosts | null} hosts null: there is one host
   */
  constructor(context, answer, tiles, hosts) {
    this.context = context;
    this.tiles = tiles;
    const lanes = answer.data;
    this.events = lanes["events"];
    this.viewport = new Viewport(lanes["start_ps"], lanes["end_ps"]);
    tiles.first = this.viewport.first;
    tiles.last = this.viewport.last;
    this.layout = new Layout(lanes);
    this.navigation = new Navigation(this);
    const changed = () => this.invalidate();
    this.legend = new Legend(lanes["activity_name"], ({ mode, off }) => {
      context.change({ colors: mode, off });
      this.lanes.retheme();
      this.invalidate();
    });
    this.names = new Names(context, lanes, changed);
    const shared = {
      viewport: this.viewport, changed,
      measure: (/** @type {number} */ from, /** @type {number} */ to, /** @type {boolean} */ done,
        /** @type {number[] | null} */ lines) => this.navigation.measure(from, to, done, lines),
      pointed: (/** @type {number | null} */ x) => this.#pointed(x),
    };
    this.over = new Over();
    this.axis = new AxisBand(shared);
    this.overview = new OverviewBand(shared);
    this.counters = new Counters(context, shared);
    this.steps = new Steps(context, shared, (step) => this.navigation.follow(step));
    this.search = new Search(context, {
      names: this.names, shared, chosen: () => this.chosen.id,
      choose: (result) => this.navigation.go(result), changed: (q) => context.change({ q }),
      onTitle: (title) => this.panel.setTitle("matches", title),
    });
    this.bar = new Bar({
      search: this.search.bar, emptyLines: this.layout.emptyLines, untimed: lanes["untimed"],
      step: (way) => this.navigation.step(way), memory: (isShown) => this.showMemory(isShown, true),
      whole: () => this.viewport.showAll(), zoom: (factor) => this.viewport.zoom(factor),
      hosts, isStacked: stackOf(context)?.isAll ?? false,
      arrows: (isShown) => this.showArrows(isShown, true), flag: () => this.navigation.flag(),
      filter: (text) => this.arrange((arrangement) => arrangement.filter(text)),
      all: () => this.arrange((arrangement) => arrangement.reset()),
    });
    this.exports = timelineExports(this);
    this.bar.where.before(this.exports.lanes, this.exports.counters);
    this.trouble = h("div", { class: "tl-trouble", hidden: true });
    this.arrows = new Arrows(context, { go: (event) => this.navigation.go(event), changed });
    this.flags = new Flags(shared, { changed: (flags) => context.change({ flags }),
      onTitle: (title) => this.panel?.setTitle("notes", title), range: () => this.range });
    this.chosen = new Chosen(context, {
      arrows: this.arrows.element, chose: (id) => void this.arrows.choose(id),
      placed: (brief) => this.navigation.placed(brief), go: (event) => this.navigation.go(event),
      zoom: (brief) => this.navigation.zoomTo(brief), mark: (brief) => this.navigation.mark(brief),
      follow: ({ step_id: id }) => void this.navigation.followNamed(String(id)),
    });
    this.range = new Range(context, {
      search: (text) => this.search.set(text, true), zoom: () => this.navigation.zoomToRange(),
      clear: () => this.navigation.setRange(null, null),
      go: (event) => void this.navigation.chooseFromAddress(event, true, true)
        .then(() => context.change({ event })),
      take: (lines) => this.navigation.setRange(this.range.from, this.range.to, lines),
      chosenLine: () => this.chosen.details?.line ?? null,
    });
    this.findings = new Findings(context, {
      hasSteps: () => this.steps.count > 0,
      followStep: (name, device) => void this.navigation.followNamed(name, device),
      showRange: (from, to) => {
        this.navigation.setRange(from, to);
        this.navigation.zoomToRange();
      },
      search: (text) => this.search.set(text, true),
    }, this.steps.ready, (title) => this.panel.setTitle("findings", title));
    this.lanes = new Lanes({
      layout: this.layout, tiles, names: this.names, legend: this.legend,
      tips: new Tips(context), range: this.range, arrows: this.arrows,
      measures: () => this.bar.isSelecting, viewport: this.viewport, changed,
      scrolled: () => this.#scrolled(), folded: () => this.folded(),
      arranged: () => this.arranged(),
      remove: (host) => hosts?.remove(host),
      choose: (event, brief) => this.navigation.choose(event, brief), measure: shared.measure,
      pointed: shared.pointed,
    });
    this.panel = new Panel([
      { key: "event", title: "Event", content: this.chosen.element },
      { key: "range", title: "Range", content: this.range.element },
      { key: "notes", title: "Notes", content: this.flags.element },
      { key: "matches", title: "Matches", content: this.search.element },
      { key: "steps", title: "Steps", content: this.steps.element,
        opened: () => this.steps.list.opened() },
      { key: "findings", title: "Findings", content: this.findings.element,
        opened: () => void this.findings.load() },
    ], () => {
      context.change({ tab: this.panel.open || (this.chosen.id === null ? null : "none") });
      this.invalidate();
    });
    this.chart = h("section", { class: "tl-chart", "aria-label": "Timeline" });
    this.#build(answer);
    this.viewport.onChange(() => this.#moved());
    this.endTheme = onTheme(() => {
      this.lanes.retheme();
      this.legend.retheme();
      this.invalidate();
    });
    attachKeys(this.viewport, this.navigation.actions(), context.signal);
    this.update(context.params);
    this.invalidate();
  }

  /** @param {import("../../core/api.js").Answer<any>} answer */
  #build(answer) {
    fill(this.context.main,
      h("h1", { class: "unseen" }, `Timeline of ${this.context.session}`),
      notices(answer), this.bar.element, this.legend.element,
      fill(this.chart,
        this.overview.element, this.axis.element, this.steps.band.element, this.flags.band.element,
        this.counters.element, this.search.band.element, this.lanes.element, this.trouble, this.over.element,
        labelEdge(this.context.main, () => this.lanes.labels.element.offsetWidth, () => this.invalidate())),
      this.panel.element);
  }

  /** Take what an address says. @param {Params} params */
  update(params) {
    this.navigation.update(params);
  }

  /** What comes after the first drawing: nothing of it delays that. */
  async #loadMore() {
    void this.#loadOverview();
    const { step, from } = this.context.params;
    if (step && !from) {
      await this.steps.load();
      await this.#loadCounters();
    } else {
      await this.#loadCounters();
      await this.steps.load();
    }
    if (this.context.signal.aborted) return;
    // The bands above took room that the chosen event had.
    const { chosen } = this.lanes;
    if (chosen && !this.context.params["y"]) requestAnimationFrame(() => this.lanes.reveal(chosen.line, chosen.row));
    this.bar.stepper.hidden = !this.steps.count;
    this.panel.setTitle("steps", this.steps.count ? `Steps (${count(this.steps.count)})` : "Steps: none");
    if (this.events <= EVENTS_OF_QUICK_FINDINGS) await this.findings.load();
  }

  async #loadCounters() {
    if (this.counters.isShown && !this.counters.isAsked) await this.counters.load();
    this.bar.memory.hidden = this.counters.isReady && !this.counters.isThere;
  }

  async #loadOverview() {
    const lines = Math.max(1, this.layout.lines.length);
    try {
      this.overview.setTile(await askTimeline(this.context, { view: "tile", rows: 1,
        width: Math.max(50, Math.min(1000, Math.floor(OVERVIEW_ITEMS / lines))) }));
    } catch (error) {
      // The picture is whole without it; the lanes tell what is wrong.
      if (!isAbort(error)) this.overview.element.hidden = true;
    }
  }

  /** Draw again, with the browser's next picture. */
  invalidate() {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      this.#isWaiting = false;
      if (!this.context.signal.aborted) this.#draw();
    });
  }

  #draw() {
    // What scrolls has a bar at its right: the bands above leave the same room.
    const { offsetWidth, clientWidth } = this.lanes.element;
    this.chart.style.setProperty("--tl-gutter", `${offsetWidth - clientWidth}px`);
    this.lanes.surface.measure();
    if (this.lanes.surface.width) this.tiles.want(this.lanes.want());
    this.lanes.draw(this.steps.marks());
    this.legend.draw(this.tiles.activities);
    this.axis.draw();
    this.overview.draw();
    this.counters.draw(this.tiles.isComplete);
    this.exports.counters.hidden = this.counters.element.hidden;
    this.steps.draw(this.tiles.isComplete);
    this.search.band.draw();
    this.flags.draw();
    if (this.tiles.isComplete) this.arrows.want(this.viewport.from, this.viewport.to);
    this.bar.setArrows(this.arrows.isShown, this.arrows.note);
    this.over.draw(this.viewport, this.lanes.surface.width, this.range, this.navigation.moment, this.flags.list);
    this.#notify();
    if (!this.#isDrawn && this.tiles.isComplete) {
      this.#isDrawn = true;
      void this.#loadMore();
    }
  }

  /** Say what is drawn, to those who do not see it. */
  #notify() {
    const { viewport, tiles } = this;
    const { from, to } = viewport;
    const what = `${counted(this.layout.lines.length - this.layout.emptyLines, "line")}, from ${
      time(from, 7)} to ${time(to, 7)}`;
    const chosen = this.chosen.details ? `; chosen: ${this.chosen.details.name}` : "";
    const canvas = this.lanes.surface.canvas;
    // Only what changed: the browser looks at every write.
    const label = `Events of ${what}${chosen}`;
    if (canvas.getAttribute("aria-label") !== label) canvas.setAttribute("aria-label", label);
    const busy = String(!tiles.isComplete && !tiles.error);
    if (canvas.getAttribute("aria-busy") !== busy) canvas.setAttribute("aria-busy", busy);
    const shown = `${from} ${to}`;
    if (canvas.dataset["shown"] !== shown) {
      canvas.dataset["shown"] = shown;
      this.bar.setWhere(from, to);
    }
    this.trouble.hidden = !tiles.error;
    if (tiles.error && this.trouble.dataset["reason"] !== String(tiles.error)) {
      this.trouble.dataset["reason"] = String(tiles.error);
      fill(this.trouble, failed(tiles.error, () => {
        tiles.retry();
        this.invalidate();
      }));
    }
  }

  #moved() {
    hideTip();
    // Not only with the next picture: the answer comes that much sooner.
    if (this.lanes.surface.width) this.tiles.want(this.lanes.want());
    this.search.moved();
    if (this.navigation.isTelling) {
      const { from, to, isWhole } = this.viewport;
      this.context.change(isWhole ? { from: null, to: null } : { from, to });
    }
    this.invalidate();
  }

  #scrolled() {
    const y = Math.round(this.lanes.element.scrollTop) || null;
    if (this.navigation.isTelling) this.context.change({ y });
    this.invalidate();
  }

  folded() {
    // What unfolds a line may show it again, too.
    this.context.change({ folded: this.layout.folded || null, ...this.layout.arrangement.state });
    this.bar.setAway(this.layout.arrangement.away, this.layout.arrangement);
    this.invalidate();
  }

  /** @param {(arrangement: import("./arrangement.js").Arrangement) => void} act */
  arrange(act) {
    act(this.layout.arrangement);
    this.layout.place();
    this.arranged();
  }

  /** Lines were pinned, hidden, moved or filtered. */
  arranged() {
    this.context.change({ ...this.layout.arrangement.state });
    this.bar.setAway(this.layout.arrangement.away, this.layout.arrangement);
    this.invalidate();
  }

  /** @param {number | null} x */
  #pointed(x) {
    this.pointer = x === null ? null : this.viewport.time(x, this.lanes.surface.width);
    this.over.point(x);
  }

  /**
   * @param {boolean} isShown
   * @param {boolean} byReader
   */
  showMemory(isShown, byReader) {
    this.counters.show(isShown);
    this.bar.setMemory(isShown);
    if (byReader) this.context.change({ memory: isShown ? null : "0" });
    if (this.#isDrawn) void this.#loadCounters();
    this.invalidate();
  }

  /**
   * @param {boolean} isShown
   * @param {boolean} byReader
   */
  showArrows(isShown, byReader) {
    this.arrows.show(isShown);
    if (byReader) this.context.change({ arrows: isShown ? "1" : null });
  }

  destroy() {
    this.endTheme();
    for (const part of [this.lanes, this.axis, this.overview, this.counters, this.steps, this.search,
      this.range, this.flags]) {
      part.destroy();
    }
  }
}
