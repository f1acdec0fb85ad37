import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { layOut } = await module("views/graph/nested.js");
const { extremes, valueAt } = await module("views/memory/curves.js");
const { partOfOp, treeOf } = await module("views/steps/op_tree.js");
const { marked } = await module("views/steps/envelope.js");

const box = (id, parent, open = false) => ({ id, parent, width: 100, height: 30, open });
const overlap = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width
  && one.y < other.y + other.height && other.y < one.y + one.height;

/** An open item 1 with 2 and 3 in it, another open one 4 with 5, and 6 outside. */
function nested() {
  const boxes = [box(1, -1, true), box(4, -1, true), box(6, -1), box(2, 1), box(3, 1), box(5, 4)];
  const links = [{ source: 2, target: 3 }, { source: 3, target: 5 }, { source: 6, target: 2 }, { source: 5, target: 6 }];
  return { boxes, links, ...layOut(boxes, links) };
}

test("every item has a place in that of its holder, beside the others", () => {
  const { boxes, places, width, height } = nested();
  assert.equal(places.size, 6);
  for (const { id, parent } of boxes) {
    const own = places.get(id), holder = places.get(parent) ?? { x: 0, y: 0, width, height };
    assert.ok(own.x >= holder.x && own.y >= holder.y, `${id}`);
    assert.ok(own.x + own.width <= holder.x + holder.width + 1e-6, `${id}`);
    assert.ok(own.y + own.height <= holder.y + holder.height + 1e-6, `${id}`);
    for (const other of boxes) {
      if (other.id !== id && other.parent === parent) assert.ok(!overlap(own, places.get(other.id)), `${id} ${other.id}`);
    }
  }
});

test("every link is drawn, in pieces that end at its items", () => {
  const { links, lines } = nested();
  links.forEach((_, edge) => {
    const own = lines.filter(({ edges }) => edges.includes(edge));
    assert.equal(own.filter(({ begin }) => begin).length >= 1, true);
    assert.equal(own.filter(({ end }) => end).length >= 1, true);
  });
  for (const { points } of lines) {
    assert.ok(points.length >= 2);
    for (const [x, y] of points) assert.ok(Number.isFinite(x) && Number.isFinite(y));
  }
});

test("a graph without anything has a size", () => {
  const { places, lines, width, height } = layOut([], []);
  assert.deepEqual([places.size, lines, width > 0, height > 0], [0, [], true, true]);
});

const CURVES = { from: 100, to: 200, width: 10, series: new Map([
  ["a", { low: Float64Array.of(NaN, 1, 2, 3, 4, 5, 6, 7, 8, 9), high: Float64Array.of(NaN, 2, 4, 6, 8, 9, 9, 9, 9, 20),
    last: Float64Array.of(NaN, 2, 3, 4, 5, 6, 7, 8, 9, 10) }],
]) };

test("a curve is told at a time, and its extremes over a stretch", () => {
  assert.deepEqual(valueAt(CURVES, "a", 110), { low: 1, high: 2, last: 2 });
  assert.deepEqual(valueAt(CURVES, "a", 199), { low: 9, high: 20, last: 10 });
  for (const time of [99, 100, 200]) assert.equal(valueAt(CURVES, "a", time), null);
  assert.equal(valueAt(CURVES, "b", 150), null);
  assert.equal(valueAt(null, "a", 150), null);
  assert.deepEqual(extremes(CURVES, ["a"], 100, 200), [1, 20]);
  assert.deepEqual(extremes(CURVES, ["a", "b"], 120, 140), [2, 6]);
  assert.equal(extremes(CURVES, ["a"], 100, 110), null);
});

const OPS = [
  { side: "device", op: "model/dense/MatMul", op_type: "MatMul", self_ps: 50 },
  { side: "device", op: "model/dense/Add", op_type: "Add", self_ps: 20 },
  { side: "device", op: "model/dense", op_type: "Call", self_ps: 5 },
  { side: "device", op: "nothing", op_type: "Add", self_ps: 0 },
];

test("ops by scope, by type and one by one add up to the same", () => {
  for (const by of ["scope", "type", "op"]) {
    const { tree, ops } = treeOf(OPS, by);
    assert.equal(tree.id[0], "all");
    assert.equal(tree.value[0], 75);
    tree.id.forEach((id, place) => {
      const below = tree.id.flatMap((_, at) => (tree.parent[at] === id ? [tree.value[at]] : []));
      const sum = below.reduce((total, value) => total + value, 0);
      assert.ok(!below.length || sum === tree.value[place], `${by} ${tree.label[place]}`);
      assert.equal(ops.get(id).reduce((total, op) => total + op.self_ps, 0), tree.value[place]);
    });
  }
});

test("the part of an op is its own, where its name is a scope too", () => {
  const made = treeOf(OPS, "scope");
  for (const op of OPS.slice(0, 3)) {
    const part = partOfOp(made, op);
    assert.deepEqual(made.ops.get(part), [op]);
  }
  assert.equal(partOfOp(made, OPS[3]), "");
  assert.equal(partOfOp(made, null), "");
});

test("sides stand apart where both have ops", () => {
  const { tree } = treeOf([...OPS, { side: "host", op: "f", op_type: "", self_ps: 1 }], "type");
  const tops = tree.label.filter((_, place) => tree.parent[place] === "all");
  assert.deepEqual(tops, ["devices", "host"]);
  assert.ok(tree.label.includes("no type"));
});

test("marks of slow steps stand apart, those that warm up and the longest first", () => {
  const bin = (first, max, more = {}) => ({ first, max, isSlow: true, isWarmUp: false, ...more });
  const bins = [bin(0, 5, { isWarmUp: true }), bin(1, 9), bin(50, 7), bin(52, 8), bin(99, 1, { isSlow: false })];
  const found = marked(bins, ({ first }) => first, 10, 100);
  assert.deepEqual(found.map(({ first }) => first), [0, 52]);
  const many = Array.from({ length: 1000 }, (_, first) => bin(first, first));
  assert.ok(marked(many, ({ first }) => first, 1, 1000).length <= 41);
});
