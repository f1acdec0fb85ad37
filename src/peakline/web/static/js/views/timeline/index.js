/** The view "timeline": asks for the lanes and the first picture at once, then shows them. */

import { isAbort } from "../../core/api.js";
import { number } from "../../core/address.js";
import { readColumns } from "../../core/columns.js";
import { fill, h } from "../../core/dom.js";
import { empty, failed, loading } from "../../core/states.js";
import { setStack } from "./ask.js";
import { HELP } from "./keys.js";
import { chosenWidth } from "./label_edge.js";
import { Hosts } from "./hosts.js";
import { Stack, parseHosts } from "./stack.js";
import { Tiles } from "./tiles.js";
import { TimelineView } from "./view.js";
import { worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

const FIRST_ROWS = 64;
/** What an address says that is of the lines and events of these hosts alone, and of their clock. */
const OF_LINES = ["event", "lanes", "folded", "pin", "hide", "order", "y", "find", "pick", "tab"];
const OF_CLOCK = ["from", "to", "at", "range", "step", "flags"];
/** What stands beside the lanes: labels, and the edges. As the stylesheet has it. */
const BESIDE_PX = 18;
const LABELS_PX = 200;
const NARROW_LABELS_PX = 150;
const SMALL_LABELS_PX = 104;
const NARROW = "(max-width: 1100px)";
const SMALL = "(max-width: 600px)";

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  /** @type {TimelineView | null} */
  let view = null;
  let params = context.params;

  /** What the address says of hosts: "all", their names, or "" for the one that is shown. */
  let hosts = "";

  async function open() {
    fill(context.main, loading("Reading the profile"));
    hosts = params["hosts"] ?? "";
    setStack(context, null);
    const tiles = new Tiles(context, () => view?.invalidate());
    try {
      const names = (await context.document)?.hosts ?? [];
      const chosen = hosts && names.length > 1 ? parseHosts(hosts, names) : [];
      const stack = chosen.length ? new Stack(context, chosen, names.length) : null;
      const first = stack ? null : askFirst(tiles);
      const answer = stack ? { data: await stack.open(), warnings: [], notes: [stack.says] } : await lanesOf();
      const lanes = answer.data;
      if (context.signal.aborted) return;
      if (!lanes["events"]) {
        fill(context.main, nothing(lanes["untimed"]));
        return;
      }
      setStack(context, stack);
      await (first ?? askFirst(tiles));
      if (context.signal.aborted) return;
      context.params = params;
      const shown = stack ? stack.hosts : [context.host || names[0] || ""];
      view = new TimelineView(context, answer, tiles,
        names.length > 1 ? new Hosts(context, names, shown, switchHosts) : null);
    } catch (error) {
      if (!isAbort(error)) fill(context.main, failed(error, () => void open()));
    }
  }

  async function lanesOf() {
    const answer = await context.toolBytes("timeline", { view: "lanes", format: "bin" });
    return { ...answer, data: readColumns(answer.data) };
  }

  /** @param {Tiles} tiles */
  function askFirst(tiles) {
    const from = number(params["from"]), to = number(params["to"]);
    const isPart = from !== null && to !== null && from < to;
    const labels = chosenWidth() ?? (matchMedia(SMALL).matches ? SMALL_LABELS_PX
      : matchMedia(NARROW).matches ? NARROW_LABELS_PX : LABELS_PX);
    const width = Math.max(200, document.documentElement.clientWidth - labels - BESIDE_PX);
    // What fails here is asked for again, and told of, by the view.
    return tiles.askFirst(isPart ? from : null, isPart ? to : null,
      Math.round(width * Math.min(devicePixelRatio || 1, 2)), FIRST_ROWS).catch(() => undefined);
  }

  /**
   * Lines and events are numbered on from host to host, so they are others then; times are others where one
   * host was shown by its own clock.
   * @param {string | null} chosen as the address says it
   */
  function switchHosts(chosen) {
    const others = [...OF_LINES, ...(hosts && chosen ? [] : OF_CLOCK)];
    context.change({ ...Object.fromEntries(others.map((key) => [key, null])), hosts: chosen }, true);
    params = Object.fromEntries(Object.entries(params).filter(([key]) => key !== "hosts" && !others.includes(key)));
    if (chosen) params["hosts"] = chosen;
    reopen();
  }

  function reopen() {
    view?.destroy();
    view = null;
    void open();
  }

  /** @param {number} untimed */
  function nothing(untimed) {
    return empty("No timed events", untimed
      ? worded(WORDING.timeline.untimed, { events: untimed.toLocaleString("en-US") }) : WORDING.timeline.nothing,
    ` ${WORDING.timeline.else_memory} `, h("a", { href: context.link("memory") }, "Memory"));
  }

  void open();
  return {
    help: HELP,
    /** @param {Record<string, string>} changed */
    update(changed) {
      params = changed;
      if ((changed["hosts"] ?? "") !== hosts) reopen();
      else view?.update(changed);
    },
    destroy() {
      view?.destroy();
    },
  };
}
