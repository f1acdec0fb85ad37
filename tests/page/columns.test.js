import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { readColumns } = await module("core/columns.js");
const { columnsOf, kindOf, titleOf, valueText } = await module("core/kinds.js");

/** An answer of the tool `timeline`, as docs/timeline.md says: header, entries, data by eights. */
function answer(columns, { magic = "PEAKTIME", version = 1 } = {}) {
  const names = Object.keys(columns), data = [];
  let at = 32 + 48 * names.length;
  const head = new ArrayBuffer(at), view = new DataView(head), text = new TextEncoder();
  new Uint8Array(head).set(text.encode(magic));
  view.setUint32(8, version, true);
  view.setUint32(16, names.length, true);
  names.forEach((name, place) => {
    const [type, isSingle, values] = columns[name];
    const content = type === 6 ? text.encode(JSON.stringify(values)) : new Uint8Array(values.buffer);
    const entry = 32 + 48 * place;
    new Uint8Array(head, entry, 24).set(text.encode(name));
    view.setUint32(entry + 24, type, true);
    view.setUint32(entry + 28, isSingle ? 1 : 0, true);
    view.setBigUint64(entry + 32, BigInt(at), true);
    view.setBigUint64(entry + 40, BigInt(type === 6 ? content.length : values.length), true);
    const padded = new Uint8Array(Math.ceil(content.length / 8) * 8);
    padded.set(content);
    data.push(padded);
    at += padded.length;
  });
  const whole = new Uint8Array(at);
  whole.set(new Uint8Array(head));
  let end = head.byteLength;
  for (const part of data) {
    whole.set(part, end);
    end += part.length;
  }
  return whole.buffer;
}

test("columns are typed arrays over the answer, numbers and JSON", () => {
  const columns = readColumns(answer({
    depth: [1, false, Uint8Array.of(0, 255)],
    shift: [2, false, Int32Array.of(-1, 2 ** 31 - 1)],
    code: [3, false, Uint32Array.of(2 ** 32 - 1)],
    start: [4, false, BigInt64Array.of(-5n, 7n)],
    share: [5, false, Float64Array.of(0.25, NaN)],
    total: [4, true, BigInt64Array.of(9007199254740991n)],
    names: [6, false, ["a", "ä€", ""]],
  }));
  assert.deepEqual(columns.depth, Uint8Array.of(0, 255));
  assert.deepEqual(columns.shift, Int32Array.of(-1, 2 ** 31 - 1));
  assert.deepEqual(columns.code, Uint32Array.of(2 ** 32 - 1));
  assert.deepEqual(columns.start, BigInt64Array.of(-5n, 7n));
  assert.deepEqual(columns.share, Float64Array.of(0.25, NaN));
  assert.equal(columns.total, 2 ** 53 - 1);
  assert.deepEqual(columns.names, ["a", "ä€", ""]);
});

test("a column of a type that is not known yet is left out", () => {
  const columns = readColumns(answer({ odd: [9, false, Uint8Array.of(1)], one: [3, true, Uint32Array.of(4)] }));
  assert.deepEqual(columns, { one: 4 });
});

test("what is no such answer is refused in one line", () => {
  const wrong = /another version/;
  assert.throws(() => readColumns(new ArrayBuffer(0)), wrong);
  assert.throws(() => readColumns(new ArrayBuffer(31)), wrong);
  assert.throws(() => readColumns(answer({}, { magic: "PEAKTIMF" })), wrong);
  assert.throws(() => readColumns(answer({}, { version: 2 })), wrong);
  assert.throws(() => readColumns(answer({ a: [1, false, Uint8Array.of(1)] }).slice(0, 60)));
});

test("what a column measures is told by its name", () => {
  const kinds = { self_ps: "time", "sum(self_ps)": "time", peak_bytes: "bytes", bytes: "bytes",
    bytes_in_use: "bytes", gain_share: "percent", fragmentation: "percent", count: "count",
    name: "count", kilobytes: "count", ps_of: "count" };
  for (const [name, kind] of Object.entries(kinds)) assert.equal(kindOf(name, [1, null]), kind, name);
  assert.equal(kindOf("mean", [1, 1.5]), "number");
  assert.equal(kindOf("self_ps", ["a"]), "text");
  assert.equal(kindOf("self_ps", [null, undefined]), "text");
});

test("a value is written by its column", () => {
  const written = [["self_ps", 1_500_000, "1.5 µs"], ["peak_bytes", 2048, "2.0 KiB"], ["share", 0.5, "50.0%"],
    ["count", 12345, "12,345"], ["step_id", 12345, "12345"], ["mean", 0.123456789, "0.123457"],
    ["is_slow", true, "yes"], ["is_slow", false, "no"], ["x", null, "–"], ["x", ["a", 1], "a, 1"]];
  for (const [name, value, text] of written) assert.equal(valueText(name, value), text, name);
});

test("a title is the name without its unit", () => {
  assert.deepEqual(["self_ps", "peak_bytes", "op", "ps"].map(titleOf),
    ["Self", "Peak bytes", "Op", "Ps"]);
});

test("columns of rows have kinds and widths", () => {
  const rows = [{ op: "a".repeat(60), self_ps: 5, step_id: 1 }, { op: null, self_ps: 7, step_id: 2 }];
  const [op, self, step] = columnsOf(rows, ["op", "self_ps", "step_id"]);
  assert.deepEqual([op.kind, self.kind, step.kind], ["text", "time", "count"]);
  assert.equal(op.width, "minmax(32.0rem, 2fr)");
  assert.equal(op.cell(rows[1]), "");
  assert.equal(step.cell(rows[0]), "1");
  assert.equal(self.cell, undefined);
});
