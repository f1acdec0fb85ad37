/** Names that are too wide for their place: cut in the middle, so that what differs stays. */

/** @type {CanvasRenderingContext2D | null | undefined} */
let ruler;
/** @type {Map<string, number>} */
const widths = new Map();

/**
 * How wide a text is in the font of labels.
 * @param {string} text
 * @param {number} [weight]
 */
function widthOf(text, weight = 400) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * 7;
  const key = `${weight} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 5000) widths.clear();
    ruler.font = `${weight} 12px ${getComputedStyle(document.body).fontFamily}`;
    width = ruler.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/**
 * The name as it fits into `room` pixels: whole, or its beginning, an ellipsis, and its end from where
 * it begins to differ from its neighbours.
 * @param {string} name
 * @param {number} room
 * @param {string[]} beside the names of its neighbours
 * @param {number} [weight] of the font
 */
export function shortened(name, room, beside, weight = 400) {
  const width = widthOf(name, weight);
  if (width <= room || name.length < 4) return name;
  let letters = Math.floor((name.length * room) / width) - 1;
  const all = beside.filter((one) => one !== name).map((one) => sharedStart(one, name)).filter((one) => one > 3);
  const shared = all.length ? Math.min(...all) : 0;
  // From a little before the difference, but no more than fits beside a beginning.
  const differs = name.length - Math.max(0, shared - 2);
  for (; letters > 3; letters--) {
    const end = Math.max(1, Math.min(letters - 2, Math.max(Math.floor(letters / 2), differs)));
    const made = `${name.slice(0, letters - end)}…${name.slice(name.length - end)}`;
    if (widthOf(made, weight) <= room) return made;
  }
  return `${name.slice(0, 2)}…${name.slice(-1)}`;
}

/**
 * @param {string} one
 * @param {string} other
 */
function sharedStart(one, other) {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
