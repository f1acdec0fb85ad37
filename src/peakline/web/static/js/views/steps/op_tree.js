/** Ops as a tree whose parts are as wide as their self time: by scope, by type, or one by one. */

/** @typedef {import("./ops_part.js").Op} Op */
/** @typedef {"scope" | "type" | "op"} By */
/**
 * @typedef {object} OpTree
 * @property {import("../../core/icicle.js").Tree} tree
 * @property {Map<string, Op[]>} ops those in each part, by its id
 */

/** Between the names of a path: in no op's name. */
const SEPARATOR = "\u0001";
const SIDES = { device: "devices", host: "host" };

/**
 * @param {Op[]} ops
 * @param {By} by
 * @returns {OpTree}
 */
export function treeOf(ops, by) {
  /** @type {Map<string, {label: string, parent: string, value: number, ops: Op[]}>} */
  const parts = new Map();
  const sides = new Set(ops.map(({ side }) => side));
  parts.set("all", { label: "all ops", parent: "", value: 0, ops: [] });
  for (const op of ops) {
    if (op.self_ps <= 0) continue;
    const path = [...(sides.size > 1 ? [SIDES[op.side] ?? op.side] : []), ...pathOf(op, by)];
    let id = "all";
    add(id, op);
    path.forEach((label, depth) => {
      const parent = id;
      // An op may be a scope of others too.
      id += `${SEPARATOR}${depth === path.length - 1 ? "=" : ""}${label}`;
      if (!parts.has(id)) parts.set(id, { label, parent, value: 0, ops: [] });
      add(id, op);
    });
  }
  const entries = [...parts].filter(([, part]) => part.value > 0 || part.parent === "");
  // Wide ones first, below each: what is too narrow to be seen stands together at the end.
  entries.sort(([, one], [, other]) => other.value - one.value);
  const root = entries.findIndex(([id]) => id === "all");
  if (root > 0) entries.unshift(...entries.splice(root, 1));
  return {
    tree: {
      id: entries.map(([id]) => id), parent: entries.map(([, part]) => part.parent),
      label: entries.map(([, part]) => part.label), value: entries.map(([, part]) => part.value),
      note: entries.map(([, part]) => (part.ops.length === 1 ? "1 op" : `${part.ops.length} ops`)),
    },
    ops: new Map(entries.map(([id, part]) => [id, part.ops])),
  };

  /**
   * @param {string} id
   * @param {Op} op
   */
  function add(id, op) {
    const part = parts.get(id);
    if (!part) return;
    part.value += op.self_ps;
    part.ops.push(op);
  }
}

/**
 * @param {Op} op
 * @param {By} by
 */
function pathOf({ op, op_type: type }, by) {
  if (by === "op") return [op];
  if (by === "type") return [type || "no type", op];
  const names = op.split("/").filter(Boolean);
  return names.length ? names : [op];
}

/**
 * The id of the part that is one op.
 * @param {OpTree} tree
 * @param {Op | null} op
 */
export function partOfOp({ ops, tree }, op) {
  if (!op) return "";
  return tree.id.find((id) => {
    const own = ops.get(id);
    return own?.length === 1 && own[0] === op && id.includes(`${SEPARATOR}=`);
  }) ?? "";
}
