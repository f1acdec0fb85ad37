/** What stands behind and across a chart of times: marks of the axis, and lines at some levels. */

import { timeMarks } from "../../core/axis.js";

/**
 * Where a chart is: pixels, and the time (ps) at its top; 0 is at its bottom.
 * @typedef {{left: number, width: number, top: number, bottom: number, most: number}} Frame
 */

/**
 * @param {CanvasRenderingContext2D} paint
 * @param {Record<string, string>} colors
 * @param {Frame} frame
 */
export function paintTimes(paint, colors, { left, width, top, bottom, most }) {
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  // As if the axis were twice as long: its marks may be nearer than those of a time axis.
  for (const { time: at, text } of timeMarks(0, most, 2 * (bottom - top))) {
    const y = bottom - (at / most) * (bottom - top);
    paint.fillStyle = colors["line"] ?? "";
    paint.fillRect(left, y, width, 1);
    paint.fillStyle = colors["quiet"] ?? "";
    paint.fillText(at ? text : "0", left - 6, y);
  }
}

/**
 * @param {CanvasRenderingContext2D} paint
 * @param {Record<string, string>} colors
 * @param {Frame} frame
 * @param {{ps: number, text: string}[]} levels
 */
export function paintLevels(paint, colors, { left, width, top, bottom, most }, levels) {
  paint.font = "12px system-ui, sans-serif";
  paint.textAlign = "right";
  paint.textBaseline = "bottom";
  let x = left + width - 4, before = Infinity;
  for (const { ps, text } of [...levels].sort((one, other) => one.ps - other.ps)) {
    const y = bottom - (ps / most) * (bottom - top);
    paint.strokeStyle = colors["text"] ?? "";
    paint.lineWidth = 1;
    paint.setLineDash([5, 4]);
    paint.beginPath();
    paint.moveTo(left, y);
    paint.lineTo(left + width, y);
    paint.stroke();
    paint.setLineDash([]);
    const wide = paint.measureText(text).width;
    // Texts of lines that are close stand side by side.
    if (before - y > 16) x = left + width - 4;
    before = y;
    paint.fillStyle = colors["panel"] ?? "";
    paint.fillRect(x - wide - 3, y - 16, wide + 6, 14);
    paint.fillStyle = colors["text"] ?? "";
    paint.fillText(text, x, y - 2);
    x -= wide + 12;
  }
}
