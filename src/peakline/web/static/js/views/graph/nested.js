/** Where things lie: each open item is laid out by itself, the innermost first, with dagre. */

import * as library from "../../../vendor/dagre/dagre.js";

const dagre = /** @type {any} */ (library);

/** Room that an open item has around what it holds, and for its name. */
const PAD = 14;
const HEAD = 26;
const ROOT = -1;
const IN = "in", OUT = "out";

/** @typedef {{id: number, parent: number, width: number, height: number, open: boolean}} Box */
/** @typedef {{source: number, target: number}} Link */
/** @typedef {{x: number, y: number, width: number, height: number}} Place its left top corner */
/**
 * A line of the picture. `edges` are places in the list of links; it ends at an item where `end` is
 * true, else at the border of the open item around it.
 * @typedef {{points: [number, number][], edges: number[], begin: boolean, end: boolean}} Line
 */
/** @typedef {{places: Map<number, Place>, lines: Line[], width: number, height: number}} Layout */
/** @typedef {{from: number | string, to: number | string, edges: number[]}} Piece */

/**
 * Lay out boxes inside each other. A link between boxes of different open ones is drawn in pieces: up
 * to the border in each, and in the one that holds both.
 * @param {Box[]} boxes those that hold others before them
 * @param {Link[]} links
 * @returns {Layout}
 */
export function layOut(boxes, links) {
  const parent = new Map(boxes.map((box) => [box.id, box.parent]));
  /** @type {Map<number, Box[]>} */
  const inside = new Map([[ROOT, []]]);
  for (const box of boxes) {
    if (box.open) inside.set(box.id, []);
    inside.get(box.parent)?.push(box);
  }
  const pieces = piecesOf(links, parent);
  /** @type {Map<number, {places: Map<number, Place>, lines: Line[], ports: Record<string, number>, width: number, height: number}>} */
  const made = new Map();
  const open = [ROOT, ...boxes.filter((box) => box.open).map((box) => box.id)];
  for (const holder of open.reverse()) {
    for (const box of inside.get(holder) ?? []) {
      const size = made.get(box.id);
      if (size) {
        box.width = Math.max(size.width + 2 * PAD, box.width);
        box.height = size.height + HEAD + PAD;
      }
    }
    made.set(holder, inOne(inside.get(holder) ?? [], [...(pieces.get(holder)?.values() ?? [])], made));
  }
  /** @type {Map<number, Place>} */
  const places = new Map();
  /** @type {Line[]} */
  const lines = [];
  /** @param {number} holder @param {number} left @param {number} top */
  const put = (holder, left, top) => {
    const own = made.get(holder);
    for (const [id, place] of own?.places ?? []) {
      const x = place.x + left, y = place.y + top;
      places.set(id, { ...place, x, y });
      const within = made.get(id);
      if (within) put(id, x + (place.width - within.width) / 2, y + HEAD);
    }
    for (const line of own?.lines ?? []) {
      lines.push({ ...line, points: line.points.map(([x, y]) => [x + left, y + top]) });
    }
  };
  put(ROOT, 0, 0);
  const whole = made.get(ROOT);
  return { places, lines, width: whole?.width ?? 0, height: whole?.height ?? 0 };
}

/**
 * The pieces of every link, by the open item that each lies in.
 * @param {Link[]} links
 * @param {Map<number, number>} parent
 */
function piecesOf(links, parent) {
  /** @type {Map<number, Map<string, Piece>>} */
  const result = new Map();
  /** @param {number} holder @param {number | string} from @param {number | string} to @param {number} edge */
  const add = (holder, from, to, edge) => {
    const own = result.get(holder) ?? new Map();
    result.set(holder, own);
    const key = `${from} ${to}`;
    const piece = own.get(key) ?? { from, to, edges: [] };
    own.set(key, piece);
    piece.edges.push(edge);
  };
  links.forEach(({ source, target }, edge) => {
    const begins = chain(source, parent), ends = chain(target, parent);
    let shared = 0;
    while (shared < begins.length && shared < ends.length && begins[shared] === ends[shared]) shared++;
    const up = begins.slice(shared), down = ends.slice(shared);
    // From the innermost outward, across, and inward again.
    up.forEach((item, place) => {
      if (place > 0) add(/** @type {number} */ (up[place - 1]), item, OUT, edge);
    });
    down.forEach((item, place) => {
      if (place > 0) add(/** @type {number} */ (down[place - 1]), IN, item, edge);
    });
    const holder = shared ? /** @type {number} */ (begins[shared - 1]) : ROOT;
    const [first] = up, [last] = down;
    if (first !== undefined && last !== undefined) add(holder, first, last, edge);
    else if (last !== undefined) add(holder, IN, last, edge);
    else if (first !== undefined) add(holder, first, OUT, edge);
  });
  return result;
}

/**
 * What holds an item and the item itself, the outermost first.
 * @param {number} item
 * @param {Map<number, number>} parent
 */
function chain(item, parent) {
  const result = [item];
  for (let at = parent.get(item) ?? ROOT; at !== ROOT; at = parent.get(at) ?? ROOT) result.unshift(at);
  return result;
}

/**
 * @param {Box[]} boxes
 * @param {Piece[]} pieces
 * @param {Map<number, {ports: Record<string, number>, width: number}>} made
 */
function inOne(boxes, pieces, made) {
  const graph = new dagre.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, edgesep: 10, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of boxes) graph.setNode(String(id), { width, height });
  for (const { from, to } of pieces) {
    for (const port of [from, to]) {
      if (typeof port === "string") graph.setNode(port, { width: 2, height: 2 });
    }
    graph.setEdge(String(from), String(to), { weight: 1 }, `${from} ${to}`);
  }
  // Ports are above and below everything: a line from the border must not cross what is between.
  if (graph.hasNode(IN)) {
    for (const id of graph.sources()) if (id !== IN) graph.setEdge(IN, id, { weight: 0 }, "above");
  }
  if (graph.hasNode(OUT)) {
    for (const id of graph.sinks()) if (id !== OUT) graph.setEdge(id, OUT, { weight: 0 }, "below");
  }
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  /** @type {Map<number, Place>} */
  const places = new Map();
  for (const { id } of boxes) {
    const { x, y, width: wide, height: high } = graph.node(String(id));
    places.set(id, { x: x - wide / 2, y: y - high / 2, width: wide, height: high });
  }
  const size = { width: Math.max(finite(width), 1), height: Math.max(finite(height), 1) };
  /** @type {Record<string, number>} */
  const ports = {};
  for (const port of [IN, OUT]) if (graph.hasNode(port)) ports[port] = graph.node(port).x;
  const lines = pieces.map(({ from, to, edges }) => {
    /** @type {[number, number][]} */
    const points = graph.edge(String(from), String(to), `${from} ${to}`).points
      .map((/** @type {{x: number, y: number}} */ { x, y }) => [x, y]);
    // To and from the border, where the piece outside goes on.
    if (from === IN) points.unshift([ports[IN] ?? 0, -HEAD]);
    if (to === OUT) points.push([ports[OUT] ?? 0, size.height + PAD]);
    join(points, from, OUT, made, places);
    join(points, to, IN, made, places);
    return { points, edges, begin: from !== IN, end: to !== OUT };
  });
  return { places, lines, ports, ...size };
}

/**
 * Let a line that ends at an open item end where its piece inside begins.
 * @param {[number, number][]} points
 * @param {number | string} item
 * @param {string} port
 * @param {Map<number, {ports: Record<string, number>, width: number}>} made
 * @param {Map<number, Place>} places
 */
function join(points, item, port, made, places) {
  const within = typeof item === "number" ? made.get(item) : undefined;
  const place = typeof item === "number" ? places.get(item) : undefined;
  const at = within?.ports[port];
  if (!within || !place || at === undefined) return;
  const x = place.x + (place.width - within.width) / 2 + at;
  const bottom = place.y + place.height;
  // A line against the order comes from the other side: it ends at the border there, or it would
  // cross everything inside.
  if (port === IN && (points[points.length - 2]?.[1] ?? 0) <= place.y) {
    points[points.length - 1] = [x, place.y];
  } else if (port === OUT && (points[1]?.[1] ?? 0) >= bottom) {
    points[0] = [x, bottom];
  }
}

/** @param {number} value */
function finite(value) {
  return Number.isFinite(value) ? value : 0;
}
