/**
 * Tiles to pixels. A row of events is painted once, as one line of pixels, and copied to its height:
 * what that takes does not grow with the number of events beyond the pixels they fill.
 */

const GAP_FROM = 3;
const HATCH = 2;

/** @typedef {import("./tiles.js").Tile} Tile */
/**
 * @typedef {object} Scale
 * @property {number} from the time of the first pixel
 * @property {number} perPs pixels per picosecond
 * @property {number} width in pixels
 */
/**
 * @typedef {object} Shades
 * @property {Uint32Array} single pixels by color
 * @property {Uint32Array} merged
 * @property {Uint32Array} dim
 * @property {Uint32Array} dimMerged
 * @property {Uint8Array | null} color by code of a name; null: activities have colors
 * @property {Uint8Array} isDim by code
 * @property {Uint8Array} isOff by activity
 */
/** An item wide enough for a text. @typedef {{tile: Tile, item: number, left: number, right: number}} Wide */

/**
 * The first item of a track that ends at `time` (ps from the tile's start) or later.
 * @param {Tile} tile
 * @param {number} track
 * @param {number} time
 */
export function firstItem(tile, track, time) {
  let low = tile.first[track], high = tile.first[track + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tile.begin[middle] + tile.duration[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Paint a track into `even` and `odd`, the lines of pixels that alternate downwards: merged items
 * differ between them, which hatches them.
 * @param {Uint32Array} even
 * @param {Uint32Array} odd
 * @param {Tile} tile
 * @param {number} track
 * @param {Scale} scale
 * @param {Shades} shades
 * @param {Wide[]} wide gets the items of at least `wideFrom` pixels
 * @param {number} wideFrom
 */
export function paintTrack(even, odd, tile, track, scale, shades, wide, wideFrom) {
  const { begin, duration, count, name, activity } = tile;
  const { color, isDim, isOff } = shades;
  const { perPs, width } = scale;
  const shift = tile.start - scale.from;
  const stop = tile.first[track + 1], end = width / perPs;
  for (let item = firstItem(tile, track, -shift); item < stop; item++) {
    const at = begin[item] + shift;
    if (at >= end) break;
    let left = Math.floor(at * perPs), right = Math.floor((at + duration[item]) * perPs);
    if (left < 0) left = 0;
    if (right <= left) right = left + 1;
    else if (right - left >= GAP_FROM) right -= 1;
    if (right > width) right = width;
    const code = name[item], does = activity[item];
    const shade = color ? color[code] ?? 0 : does, isPlain = !isDim[code] && !isOff[does];
    if (count[item] > 1) {
      const plain = (isPlain ? shades.single : shades.dim)[shade] ?? 0;
      const pale = (isPlain ? shades.merged : shades.dimMerged)[shade] ?? 0;
      if (right - left <= HATCH) {
        // Most items are that narrow; a loop is faster than a call of fill.
        for (let x = left; x < right; x++) even[x] = odd[x] = pale;
      } else {
        for (let x = left; x < right; x++) {
          const isFirst = (x & HATCH) === 0;
          even[x] = isFirst ? pale : plain;
          odd[x] = isFirst ? plain : pale;
        }
      }
    } else {
      const plain = (isPlain ? shades.single : shades.dim)[shade] ?? 0;
      if (right - left <= HATCH) {
        for (let x = left; x < right; x++) even[x] = odd[x] = plain;
      } else {
        even.fill(plain, left, right);
        odd.fill(plain, left, right);
      }
    }
    if (right - left >= wideFrom) wide.push({ tile, item, left, right });
  }
}

/**
 * Copy the two lines of pixels into an image, from row `top` down to `bottom`, hatched.
 * @param {Uint32Array} image
 * @param {number} width
 * @param {number} top
 * @param {number} bottom
 * @param {Uint32Array} even
 * @param {Uint32Array} odd
 */
export function stamp(image, width, top, bottom, even, odd) {
  for (let y = top; y < bottom; y++) image.set((y & HATCH) === 0 ? even : odd, y * width);
}
