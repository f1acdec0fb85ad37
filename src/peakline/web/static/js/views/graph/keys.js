/** Keys of the picture: along edges, in and out of scopes, and the view itself. */

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./nested.js").Layout} Layout */
/**
 * @typedef {object} Moves
 * @property {(id: number) => void} focus
 * @property {(id: number) => void} select
 * @property {(id: number, isOpen: boolean) => void} open
 * @property {(id: number, by: 1 | -1) => void} edge choose the next or the previous edge at an item
 * @property {() => number | null} across the item at the other end of the chosen edge
 * @property {() => boolean} leave end what alone is shown; false where there is nothing to end
 * @property {import("./camera.js").Camera} camera
 */

/** @type {[string, string][]} */
export const HELP = [
  ["↓ ↑", "along an edge: to what uses the item, to what it is made from"],
  ["← →", "to the item beside it"],
  ["E, Shift and E", "choose one of the item's edges after the other; Enter goes to its other end"],
  ["Enter, Space", "select; open a scope, close it again"],
  ["Backspace", "close the scope around the item"],
  ["Esc", "close the scope that is selected, or show the whole graph again"],
  ["/", "search; ↓ goes through the matches, Enter chooses one"],
  ["+ − 0", "zoom in, out, show all; Ctrl and the wheel, two fingers; dragging moves"],
  ["Shift and an arrow", "move the picture"],
];

/**
 * @param {KeyboardEvent} event on an item
 * @param {number} id
 * @param {Picture} picture
 * @param {Layout} layout
 * @param {Moves} moves
 * @returns {boolean} whether the key meant something
 */
export function keyOn(event, id, picture, layout, moves) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const item = picture.items.find((one) => one.id === id);
  if (!item) return false;
  const arrows = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
  const arrow = arrows[/** @type {keyof arrows} */ (event.key)];
  if (arrow && event.shiftKey) {
    moves.camera.pan(arrow[0] ?? 0, arrow[1] ?? 0);
    return true;
  }
  switch (event.key) {
    case "ArrowDown": case "ArrowUp": {
      const next = along(id, event.key === "ArrowDown", picture, layout);
      if (next !== null) moves.focus(next);
      return true;
    }
    case "ArrowLeft": case "ArrowRight": {
      const next = beside(id, event.key === "ArrowRight", picture, layout);
      if (next !== null) moves.focus(next);
      return true;
    }
    case "e": case "E":
      moves.edge(id, event.shiftKey ? -1 : 1);
      return true;
    case "Enter": case " ": {
      const other = moves.across();
      if (other !== null) {
        moves.focus(other);
        return true;
      }
      if (item.children) moves.open(id, !item.is_open);
      moves.select(id);
      return true;
    }
    case "Backspace":
      if (item.parent >= 0) moves.open(item.parent, false);
      return true;
    case "Escape":
      if (item.is_open) moves.open(id, false);
      else if (!moves.leave() && item.parent >= 0) moves.open(item.parent, false);
      return true;
    default: return false;
  }
}

/**
 * The item at the other end of an edge: the one that most goes to or comes from; of an open item also
 * the first in it, from what is in one the item itself.
 * @param {number} id
 * @param {boolean} isDown
 * @param {Picture} picture
 * @param {Layout} layout
 */
function along(id, isDown, picture, layout) {
  const ends = picture.edges.filter((edge) => (isDown ? edge.source : edge.target) === id)
    .sort((one, other) => other.bytes - one.bytes || other.edges - one.edges);
  const [most] = ends;
  if (most) return isDown ? most.target : most.source;
  const item = picture.items.find((one) => one.id === id);
  if (isDown && item?.is_open) {
    return picture.items.find((one) => one.parent === id)?.id ?? null;
  }
  if (!isDown && item && item.parent >= 0) return item.parent;
  return near(id, picture, layout, (from, to) => (isDown ? to.y - from.y : from.y - to.y));
}

/**
 * @param {number} id
 * @param {boolean} isRight
 * @param {Picture} picture
 * @param {Layout} layout
 */
function beside(id, isRight, picture, layout) {
  return near(id, picture, layout, (from, to) => (isRight ? to.x - from.x : from.x - to.x));
}

/**
 * The nearest item of the same holder in a direction; null at the end.
 * @param {number} id
 * @param {Picture} picture
 * @param {Layout} layout
 * @param {(from: {x: number, y: number}, to: {x: number, y: number}) => number} ahead
 */
function near(id, picture, layout, ahead) {
  const parent = picture.items.find((one) => one.id === id)?.parent;
  const from = middle(id, layout);
  if (!from) return null;
  let best = null, least = Infinity;
  for (const item of picture.items) {
    const to = item.parent === parent && item.id !== id ? middle(item.id, layout) : null;
    const far = to ? ahead(from, to) : 0;
    if (!to || far <= 1) continue;
    const cost = far + 2 * (Math.abs(to.x - from.x) + Math.abs(to.y - from.y) - far);
    if (cost < least) [best, least] = [item.id, cost];
  }
  return best;
}

/** @param {number} id @param {Layout} layout */
function middle(id, layout) {
  const place = layout.places.get(id);
  return place ? { x: place.x + place.width / 2, y: place.y + place.height / 2 } : null;
}
