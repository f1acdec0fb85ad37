/** Names that are too wide for their place: cut in the middle, so that what differs stays. */

/** Of an end so much is shown at least, as a share. */
const LEAST_END = 0.3;
const LEAST_WORD = 0.5;
const MOST_BESIDE = 2000;
const SEPARATORS = ["/", "_", ".", " ", ":"];

/** @type {CanvasRenderingContext2D | null | undefined} */
let ruler;
/** @type {Map<string, number>} */
const widths = new Map();

/**
 * How wide a text is in the font of labels.
 * @param {string} text
 * @param {number} [weight]
 */
export function widthOf(text, weight = 400) {
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
 * The name as it fits into `room` pixels: whole, or its beginning, an ellipsis, and as much of its end as
 * sets it apart from its neighbours.
 * @param {string} name
 * @param {number} room
 * @param {string[]} beside the names of its neighbours
 * @param {number} [weight] of the font
 */
export function shortened(name, room, beside, weight = 400) {
  const width = widthOf(name, weight);
  if (width <= room || name.length < 4) return name;
  const others = beside.slice(0, MOST_BESIDE).filter((one) => one !== name && one.startsWith(name.slice(0, 2)));
  for (let letters = Math.floor((name.length * room) / width) - 1; letters > 3; letters--) {
    let end = Math.ceil(letters * LEAST_END);
    while (end < letters - 2 && others.some((one) =>
      one.startsWith(name.slice(0, letters - end)) && one.endsWith(name.slice(-end)))) end++;
    const made = `${name.slice(0, letters - end)}…${name.slice(-end)}`;
    if (widthOf(made, weight) <= room) return made;
  }
  return `${name.slice(0, 2)}…${name.slice(-1)}`;
}

/**
 * The name on two lines of `room` pixels: whole, or the end of it on the second.
 * @param {string} name
 * @param {number} room
 * @returns {[string, string]} the second is "" where one is enough
 */
export function onTwoLines(name, room) {
  if (widthOf(name) <= room) return [name, ""];
  let first = name.length - 1;
  while (first > 1 && widthOf(name.slice(0, first)) > room) first--;
  // After a word, where that leaves no gap.
  const word = Math.max(...SEPARATORS.map((one) => name.lastIndexOf(one, first - 1) + 1));
  if (word >= first * LEAST_WORD) first = word;
  const rest = name.slice(first).trimStart();
  if (widthOf(rest) <= room) return [name.slice(0, first), rest];
  let last = 1;
  while (last < rest.length && widthOf(`…${rest.slice(-last - 1)}`) <= room) last++;
  return [name.slice(0, first), `…${rest.slice(-last)}`];
}
