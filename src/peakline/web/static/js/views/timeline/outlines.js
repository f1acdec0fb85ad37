/** What is outlined over the lanes: the chosen event, and the marked area of some lines. */

import { ROW_PX } from "./layout.js";

/** @typedef {{layout: import("./layout.js").Layout, viewport: import("../../core/viewport.js").Viewport, range: import("./range.js").Range}} Place */

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Place} place
 * @param {import("./layout.js").Entry[]} entries those in view
 * @param {number} scroll
 * @param {number} width of the canvas
 * @param {Record<string, string>} colors
 */
export function drawArea(context, { range: { from, to, lines }, viewport }, entries, scroll, width, colors) {
  if (from === null || to === null || !lines) return;
  const chosen = new Set(lines);
  const left = Math.max(-2, viewport.x(from, width)), right = Math.min(width + 2, viewport.x(to, width));
  context.fillStyle = context.strokeStyle = colors["accent"] ?? "";
  context.lineWidth = 1;
  for (const { line, top, height } of entries) {
    if (!line || !chosen.has(line.line)) continue;
    context.globalAlpha = 0.16;
    context.fillRect(left, top - scroll, right - left, height);
    context.globalAlpha = 1;
    context.strokeRect(left + 0.5, top - scroll + 0.5, right - left - 1, height - 1);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Place} place
 * @param {import("./lanes.js").Brief} chosen
 * @param {number} scroll
 * @param {number} width of the canvas
 * @param {Record<string, string>} colors
 */
export function drawChosen(context, { layout, viewport }, chosen, scroll, width, colors) {
  const { line, row, start_ps: start, duration_ps: duration } = chosen;
  const top = layout.topOf(line, row);
  if (top === null) return;
  const left = Math.max(-9, viewport.x(start, width));
  const right = Math.min(width + 9, Math.max(viewport.x(start + duration, width), left + 3));
  context.lineWidth = 4;
  context.strokeStyle = colors["panel"] ?? "";
  context.strokeRect(left - 1, top - scroll - 0.5, right - left + 1, ROW_PX);
  context.lineWidth = 2;
  context.strokeStyle = colors["text"] ?? "";
  context.strokeRect(left - 1, top - scroll - 0.5, right - left + 1, ROW_PX);
}
