/** The view "timeline": asks for the lanes and the first picture at once, then shows them. */

import { isAbort } from "../../core/api.js";
import { number } from "../../core/address.js";
import { readColumns } from "../../core/columns.js";
import { fill, h } from "../../core/dom.js";
import { empty, failed, loading } from "../../core/states.js";
import { HELP } from "./keys.js";
import { Tiles } from "./tiles.js";
import { TimelineView } from "./view.js";

const FIRST_ROWS = 64;
/** What stands beside the lanes: labels, and the edges. As the stylesheet has it. */
const BESIDE_PX = 18;
const LABELS_PX = 200;
const NARROW_LABELS_PX = 150;
const NARROW = "(max-width: 1100px)";

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  /** @type {TimelineView | null} */
  let view = null;
  let params = context.params;

  async function open() {
    fill(context.main, loading("Reading the profile"));
    const tiles = new Tiles(context, () => view?.invalidate());
    const from = number(params["from"]), to = number(params["to"]);
    const isPart = from !== null && to !== null && from < to;
    const labels = matchMedia(NARROW).matches ? NARROW_LABELS_PX : LABELS_PX;
    const width = Math.max(200, document.documentElement.clientWidth - labels - BESIDE_PX);
    // What fails here is asked for again, and told of, by the view.
    const first = tiles.askFirst(isPart ? from : null, isPart ? to : null,
      Math.round(width * Math.min(devicePixelRatio || 1, 2)), FIRST_ROWS).catch(() => undefined);
    try {
      const answer = await context.toolBytes("timeline", { view: "lanes", format: "bin" });
      const lanes = readColumns(answer.data);
      if (context.signal.aborted) return;
      if (!lanes["events"]) {
        fill(context.main, nothing(lanes["untimed"]));
        return;
      }
      await first;
      if (context.signal.aborted) return;
      context.params = params;
      view = new TimelineView(context, { ...answer, data: lanes }, tiles);
    } catch (error) {
      if (!isAbort(error)) fill(context.main, failed(error, () => void open()));
    }
  }

  /** @param {number} untimed */
  function nothing(untimed) {
    return empty("No timed events", untimed
      ? `This profile has ${untimed.toLocaleString("en-US")} events, but none records when it ran. `
      : "This profile does not record what ran when. ",
    "What it has about memory is under ", h("a", { href: context.link("memory") }, "Memory"), ".");
  }

  void open();
  return {
    help: HELP,
    /** @param {Record<string, string>} changed */
    update(changed) {
      params = changed;
      view?.update(changed);
    },
    destroy() {
      view?.destroy();
    },
  };
}
