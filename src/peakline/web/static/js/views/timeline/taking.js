/** What the timeline shows, to be taken along: the picture with its labels, events and counters as rows. */

import { contextOf } from "../../core/canvas.js";
import { toolCommand } from "../../core/command.js";
import { h } from "../../core/dom.js";
import { exportMenu } from "../../core/exporting.js";
import { palette } from "../../core/theme.js";
import { askTimeline, stackOf } from "./ask.js";

const TEXTS = ".tl-band .title, .tl-band .title span, .tl-label .name, .tl-label .name span, .tl-label .facts-below";
const PLACES = ".tl-counters, .tl-scroller, .tl-chart";

/** @typedef {import("./view.js").TimelineView} View */
/** @typedef {import("../../core/exporting.js").Rows} Rows */

/**
 * The menus of the timeline and of its counters.
 * @param {View} view
 */
export function timelineExports(view) {
  const { context } = view;
  const shown = () => ({ start_ps: view.viewport.from, end_ps: view.viewport.to,
    width: view.lanes.surface.width || 1000 });
  /** @param {Record<string, string | number>} query */
  const command = (query) => async () => `${await toolCommand(context, "timeline", query)}${
    stackOf(context) ? " # once for each host" : ""}`;
  const lanes = exportMenu({ name: `${context.session}_timeline`, rows: () => eventRows(view, shown()),
    picture: () => pictureOf(view.chart), command: () => command({ view: "tile", ...shown() })() });
  const counters = exportMenu({ name: `${context.session}_counters`, title: "Export counters",
    rows: () => view.counters.rows(), picture: () => pictureOf(view.counters.element),
    command: () => command({ view: "counter", ...shown() })() });
  counters.hidden = true;
  return { lanes, counters };
}

/**
 * The items of the lanes that are in view: events, and runs of short ones.
 * @param {View} view
 * @param {{start_ps: number, end_ps: number, width: number}} shown
 * @returns {Promise<Rows>}
 */
async function eventRows({ context, names, layout, legend }, shown) {
  const tile = await askTimeline(context, { view: "tile", activities: "true", ...shown });
  await names.all(tile["name"]);
  /** @type {unknown[][]} */
  const rows = [];
  for (let track = 0; track < tile["track_line"].length; track++) {
    const line = layout.lines[tile["track_line"][track]];
    for (let item = tile["track_first"][track]; item < tile["track_first"][track + 1]; item++) {
      rows.push([layout.planes[line?.plane ?? -1]?.name ?? "", line?.name ?? "", tile["track_row"][track],
        shown.start_ps + tile["begin_ps"][item], tile["duration_ps"][item], tile["count"][item],
        names.get(tile["name"][item]), legend.activities[tile["activity"][item]]?.name ?? "",
        tile["event"][item]]);
    }
  }
  return { columns: ["plane", "line", "row", "start_ps", "duration_ps", "events", "name", "activity", "event"], rows };
}

/**
 * A part of the page as it is seen: its canvases, and the labels beside them.
 * @param {HTMLElement} part
 */
function pictureOf(part) {
  const box = part.getBoundingClientRect(), ratio = Math.min(devicePixelRatio || 1, 2);
  const picture = h("canvas"), on = contextOf(picture);
  if (!on || !box.width || !box.height) return null;
  picture.width = Math.round(box.width * ratio);
  picture.height = Math.round(box.height * ratio);
  on.setTransform(ratio, 0, 0, ratio, -box.left * ratio, -box.top * ratio);
  on.fillStyle = palette()["panel"] ?? "";
  on.fillRect(box.left, box.top, box.width, box.height);
  on.textBaseline = "middle";
  for (const element of part.querySelectorAll(`canvas, ${TEXTS}`)) {
    const own = element.getBoundingClientRect(), seen = element.closest(PLACES)?.getBoundingClientRect() ?? box;
    if (!own.width || !own.height || own.bottom <= seen.top || own.top >= seen.bottom) continue;
    on.save();
    on.beginPath();
    on.rect(seen.left, seen.top, seen.width, seen.height);
    on.clip();
    if (element instanceof HTMLCanvasElement) on.drawImage(element, own.left, own.top, own.width, own.height);
    else if (!element.children.length) {
      const style = getComputedStyle(element);
      on.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      on.fillStyle = style.color;
      const inset = parseFloat(style.paddingLeft) || 0;
      on.fillText(element.textContent ?? "", own.left + inset, own.top + own.height / 2, own.width);
    }
    on.restore();
  }
  return picture;
}
