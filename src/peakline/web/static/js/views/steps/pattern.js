/** Hatchings of a canvas, as the stylesheet's: what a color says, said again. */

const SIZE = 8;

/**
 * @param {CanvasRenderingContext2D} paint
 * @param {"/" | "x"} kind
 * @param {string} color of the lines
 * @returns {CanvasPattern | string}
 */
export function patternOf(paint, kind, color) {
  const tile = new OffscreenCanvas(SIZE, SIZE);
  const draw = tile.getContext("2d");
  if (!draw) return color;
  draw.strokeStyle = color;
  draw.lineWidth = 1.5;
  draw.beginPath();
  // Beyond the edges too, so that tiles join without a gap.
  for (const at of [-SIZE, 0, SIZE]) {
    draw.moveTo(at - 1, SIZE + 1);
    draw.lineTo(at + SIZE + 1, -1);
    if (kind === "x") {
      draw.moveTo(at - 1, -1);
      draw.lineTo(at + SIZE + 1, SIZE + 1);
    }
  }
  draw.stroke();
  return paint.createPattern(tile, "repeat") ?? color;
}
