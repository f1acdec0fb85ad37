import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { byteMarks, timeMarks } = await module("core/axis.js");
const { ticks } = await module("core/ticks.js");
const { Viewport } = await module("core/viewport.js");

test("marks of time are round, in one unit, and not too near", () => {
  assert.deepEqual(timeMarks(0, 1e9, 1100).map(({ text }) => text),
    ["0 µs", "100 µs", "200 µs", "300 µs", "400 µs", "500 µs", "600 µs", "700 µs", "800 µs", "900 µs", "1,000 µs"]);
  assert.deepEqual(timeMarks(-2e6, 2e6, 440).map(({ time }) => time), [-2e6, -1e6, 0, 1e6, 2e6]);
  assert.equal(timeMarks(1234e12, 1236e12, 300)[0].text, "1,234 s");
});

test("marks far from zero are each there once", () => {
  for (const [from, span] of [[9e15, 3], [2 ** 60, 4096], [0, 0], [5, 1e-9]]) {
    const marks = timeMarks(from, from + span, 900);
    assert.ok(marks.length <= 201);
    assert.equal(new Set(marks.map(({ time }) => time)).size, marks.length);
    for (const { time } of marks) assert.ok(time >= from && time <= from + span);
  }
});

test("marks of sizes are binary", () => {
  assert.deepEqual(byteMarks(2048, 4), [0, 512, 1024, 1536, 2048]);
  assert.deepEqual(byteMarks(3 * 1024 ** 3, 3), [0, 1, 2, 3].map((one) => one * 1024 ** 3));
  assert.deepEqual(byteMarks(0, 4), [0]);
});

test("round values lie within", () => {
  assert.deepEqual(ticks(0, 1, 4), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(ticks(-5, 5, 2), [-5, 0, 5]);
  assert.deepEqual(ticks(1024, 4096, 4, true), [1024, 2048, 3072, 4096]);
  for (const [low, high] of [[0, 0], [3, 3], [1e15, 1e15 + 1], [-1e-9, 1e-9]]) {
    for (const value of ticks(low, high, 5)) assert.ok(value >= low - 1e-12 && value <= high * (1 + 1e-12) + 1e-12);
  }
});

test("a viewport stays within what there is", () => {
  const viewport = new Viewport(1000, 101_000);
  assert.ok(viewport.isWhole);
  viewport.show(-5000, 2000);
  assert.deepEqual([viewport.from, viewport.to], [1000, 8000]);
  viewport.show(100_000, 200_000);
  assert.deepEqual([viewport.from, viewport.to], [1000, 101_000]);
  viewport.show(50_000, 50_010);
  assert.equal(viewport.span, 100);
});

test("what the pointer is at stays where it is", () => {
  const viewport = new Viewport(0, 1_000_000);
  viewport.show(200_000, 600_000);
  const at = viewport.time(250, 1000);
  viewport.zoom(0.5, at);
  assert.deepEqual([viewport.from, viewport.to], [250_000, 450_000]);
  assert.equal(viewport.x(at, 1000), 250);
  viewport.zoom(100, at);
  assert.ok(viewport.isWhole);
});

test("it is moved up to its ends, and told of only when it changes", () => {
  const viewport = new Viewport(0, 1000);
  let told = 0;
  const end = viewport.onChange(() => { told += 1; });
  viewport.showAll();
  viewport.pan(1);
  assert.equal(told, 0);
  viewport.show(0, 500);
  viewport.pan(10);
  assert.deepEqual([viewport.from, viewport.to, told], [500, 1000, 2]);
  viewport.bring(600, 640);
  assert.deepEqual([viewport.from, viewport.to, told], [500, 740, 3]);
  end();
  viewport.pan(-10);
  assert.equal(told, 3);
});

test("a profile of one moment has a length too", () => {
  const viewport = new Viewport(2 ** 60, 2 ** 60);
  assert.ok(viewport.last > viewport.first);
  assert.ok(Number.isFinite(viewport.x(2 ** 60, 100)));
});
