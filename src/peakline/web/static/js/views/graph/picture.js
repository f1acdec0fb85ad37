/** What the service says of a graph, as objects: items, edges, details. */

/**
 * @typedef {object} Item something visible: a node, or what holds several
 * @property {number} id
 * @property {number} parent the open item around it, -1 for none
 * @property {"node" | "scope" | "body" | "series" | "op" | "range"} kind
 * @property {string} label
 * @property {string | null} name of a node
 * @property {string | null} op of a node
 * @property {string | null} device of a node
 * @property {boolean} is_open
 * @property {number} children how many it holds directly
 * @property {number} nodes how many nodes it is or holds
 * @property {number} time_ps
 * @property {number} runs
 * @property {number} peak_bytes
 * @property {[string, number][]} categories the most frequent ones with their numbers of nodes
 * @property {[string, number][]} devices
 */
/**
 * @typedef {object} Edge all edges from one visible item to another
 * @property {number} source
 * @property {number} target
 * @property {number} edges
 * @property {number} controls how many of them only order
 * @property {number} bytes of those whose size is known
 * @property {number} unknown how many have no known size
 * @property {string | null} shape of the largest
 */
/**
 * @typedef {object} Head which graph it is
 * @property {string} graph
 * @property {string | null} function
 * @property {string} kind
 * @property {number} nodes
 * @property {number} nodes_inside more nodes, in bodies of the functions that they call
 * @property {number} edges_total
 */
/**
 * @typedef {Head & {view: string, has_time: boolean, has_memory: boolean, has_sizes: boolean,
 *   step: string | null, time_ps: number, categories: string[], devices: string[],
 *   sizes_left_out: boolean, opened: number[], refused: number[], most_items: number, left_out: number, more: number,
 *   items: Item[], edges: Edge[], inside: {source: number, target: number}[]}} Picture
 */

/** @typedef {import("../../core/api.js").Asked["query"]} Query */

/**
 * A picture of the service: the answer's columns as objects.
 * @param {any} data of the views scopes, around and path
 * @returns {Picture}
 */
export function pictureOf(data) {
  const { left_out: leftOut, ...edges } = data.edges;
  return { ...data, items: objects(data.items), edges: objects(edges), inside: objects(data.inside),
    left_out: leftOut, more: data.more ?? 0 };
}

/**
 * @param {Record<string, any[]>} columns
 * @returns {any[]}
 */
function objects(columns) {
  const names = Object.keys(columns);
  const [first = []] = Object.values(columns);
  return first.map((_, row) =>
    Object.fromEntries(names.map((name) => [name, columns[name]?.[row]])));
}

/**
 * Whether an item can be opened and closed.
 * @param {Item} item
 */
export function isHolder(item) {
  return item.children > 0;
}
