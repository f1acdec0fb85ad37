import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { rampOf } = await module("core/colors.js");
const { firstView, viewsOf } = await module("core/views.js");
const { Bars } = await module("views/job/arrivals.js");
const { ranges } = await module("views/job/answer.js");
const { waitedFor } = await module("views/job/index.js");
const { shortened } = await module("views/job/heat.js");
const { MEASURES, Measure, measuresOf } = await module("views/job/measures.js");
const { groupingsOf, orderOf } = await module("views/job/order.js");

const RANKS = ["rank 0", "rank 1", "rank 2", "rank 3"];
const data = {
  steps: ["step 1", "step 2"],
  ranks: { rank: [0, 1, 2, 3], title: RANKS, host: ["b", "b2", "b10", "a"],
    machine: ["n10", "n10", "n2", "n2"], stage: [0, 1, 0, 1], peak_bytes: [5, null, 7, 9] },
  groups: [{ title: "dp", labels: ["ranks 0, 2", "rank 1"], of: [0, 1, 0, null] }],
  step_ps: { unit: 1000, rows: [[10, 12], [10, null], [10, 10], [30, 10]] },
  excess_ps: { unit: 10, rows: [[-100, 200], [0, null], [0, 0], [2000, 0]] },
  work_ps: null, waiting_ps: null, late_ps: null, peak_bytes: null,
};
const named = ({ ranks }) => [...ranks].map((rank) => RANKS[rank]);

test("numbers are in ps, what is not known is none of them, and what nobody knows is left out", () => {
  const measures = measuresOf(data);
  assert.deepEqual([...measures.keys()], ["excess", "step", "peak"]);
  assert.deepEqual([...measures.get("step").values], [10000, 12000, 10000, NaN, 10000, 10000, 30000, 10000]);
  assert.deepEqual([...measures.get("excess").means()], [500, 0, 0, 10000]);
  assert.deepEqual([...measures.get("peak").values], [5, NaN, 7, 9]);
  assert.equal(measures.get("peak").text(NaN), "not known");
  assert.ok(measures.get("peak").isOfRank);
  const byStep = measuresOf({ ...data, peak_bytes: { unit: 100, rows: [[1, 2], [null, 2], [3, 3], [1, 1]] } });
  assert.deepEqual([...byStep.get("peak").values], [100, 200, NaN, 200, 300, 300, 100, 100]);
  assert.ok(!byStep.get("peak").isOfRank);
});

test("colors go up with the numbers, and of excess from both sides of none", () => {
  const measures = measuresOf(data), step = measures.get("step"), excess = measures.get("excess");
  assert.equal(step.shade(10000), 0);
  assert.equal(step.shade(30000), 255);
  assert.ok(step.shade(12000) > 0 && step.shade(12000) < 128);
  assert.equal(step.shade(NaN), -1);
  assert.equal(excess.shade(20000), 255);
  assert.equal(excess.shade(-20000), 0);
  assert.equal(excess.shade(0), 128);
});

test("what hardly differs is not made to look so, and one far away does not hide the others", () => {
  const [kind] = MEASURES;
  const noise = new Measure(kind, Float64Array.from({ length: 100 }, (_, place) => place % 3), 10, 1000);
  assert.ok(noise.shade(2) < 160);
  const values = Float64Array.from({ length: 10_000 }, (_, place) => place === 7 ? 1e6 : place % 200);
  const one = new Measure(kind, values, 100, 1000);
  assert.equal(one.shade(1e6), 255);
  assert.ok(one.shade(199) > 160);
  assert.ok(one.most > one.high);
});

test("ranks are sorted by number, by value and by host, numbers in names as numbers", () => {
  const values = Float64Array.from([1, NaN, 3, 2]);
  assert.deepEqual(named(orderOf(data, "rank", values, null)), RANKS);
  assert.deepEqual(named(orderOf(data, "value", values, null)), ["rank 2", "rank 3", "rank 0", "rank 1"]);
  assert.deepEqual(named(orderOf(data, "host", values, null)), ["rank 3", "rank 2", "rank 0", "rank 1"]);
});

test("groups stand together, under their heads", () => {
  const values = Float64Array.from([1, NaN, 3, 2]);
  const [machine, stage, group] = groupingsOf(data);
  assert.deepEqual([machine, stage, group].map(({ title }) => title), ["Machine", "Pipeline stage", "Group: dp"]);
  const heads = (order) => order.heads.map(({ head, place }) => [head, place]);
  let order = orderOf(data, "rank", values, machine);
  assert.deepEqual([named(order), heads(order)],
    [["rank 2", "rank 3", "rank 0", "rank 1"], [["n2", 0], ["n10", 2]]]);
  order = orderOf(data, "value", values, stage);
  assert.deepEqual([named(order), heads(order)],
    [["rank 2", "rank 0", "rank 3", "rank 1"], [["stage 0", 0], ["stage 1", 2]]]);
  order = orderOf(data, "rank", values, group);
  assert.deepEqual([named(order), heads(order)],
    [["rank 0", "rank 2", "rank 1", "rank 3"], [["ranks 0, 2", 0], ["rank 1", 2], ["in none", 3]]]);
});

test("what all steps begin with is left out where a number remains", () => {
  assert.deepEqual(shortened(["Step#9", "Step#10"]), { before: "Step#", texts: ["9", "10"] });
  assert.deepEqual(shortened(["Step#10", "Step#11"]).texts, ["10", "11"]);
  assert.deepEqual(shortened(["train 1", "eval 1"]), { before: "", texts: ["train 1", "eval 1"] });
});

test("a ramp goes through its colors, as pixels", () => {
  const ramp = rampOf([[0, 0, 0], [255, 0, 0], [255, 255, 255]]);
  assert.equal(ramp[0], 0xff000000);
  assert.equal(ramp[255], 0xffffffff);
  assert.equal(ramp[128] & 255, 255);
});

test("ranks in order are ranges", () => {
  assert.equal(ranges([7, 0, 1, 2]), "ranks 0-2, 7");
  assert.equal(ranges([3]), "rank 3");
});

test("only a session of several hosts opens at its job", () => {
  const tools = ["job", "summary", "timeline"];
  assert.equal(firstView({ tools, hosts: ["a", "b"] }), "job");
  assert.equal(firstView({ tools, hosts: ["a"] }), "summary");
  assert.equal(firstView({ tools: null, hosts: ["a", "b"] }), "summary");
  assert.deepEqual(viewsOf({ tools, hosts: ["a"] }).map(({ view }) => view), ["timeline", "sql"]);
});

test("bars of a step are by rank and time, and what runs at a moment is the last that began", () => {
  const rows = [
    { arrive_ps: 500, last_ps: 520, end_ps: 540, ranks: [0, 2], arrive_after_ps: [0, 20], end_after_ps: [40, 40] },
    { arrive_ps: 100, last_ps: 100, end_ps: 590, ranks: [2], arrive_after_ps: [0], end_after_ps: [490] },
  ];
  const bars = new Bars(rows, 3);
  assert.deepEqual([...bars.first], [0, 1, 1, 3]);
  assert.deepEqual([...bars.arrive], [400, 0, 420]);
  assert.deepEqual([...bars.left], [440, 490, 440]);
  assert.deepEqual([...bars.of], [0, 1, 0]);
  assert.deepEqual([bars.begin, bars.end], [100, 490]);
  assert.deepEqual([10, 430, 450, 495].map((at) => bars.find(2, at, 1)), [1, 2, 1, -1]);
  assert.equal(bars.find(1, 430, 1), -1);
});

test("marked are the ranks that others wait for, and those behind slow links", () => {
  const ranks = [[0, "n0"], [1, "n0"], [null, "n1"], [3, "n1"]].map(([rank, machine], place) =>
    ({ rank, title: `title ${place}`, machine }));
  const marked = (...roots) => [...waitedFor({ time: { roots }, ranks })];
  assert.deepEqual(marked({ ranks: [1], title: "rank 1", machines: [] }), [1]);
  assert.deepEqual(marked({ ranks: [null], title: "title 2", machines: [] }), [2]);
  assert.deepEqual(marked({ title: null, machines: ["n1"] }), [2, 3]);
  assert.deepEqual([...waitedFor({ time: null, ranks })], []);
});
