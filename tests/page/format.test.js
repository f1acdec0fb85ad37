import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { bytes, count, counted, date, percent, shares, time } = await module("core/format.js");
const { cut, cutMiddle, range } = await module("views/steps/labels.js");
const { freeName, safeName, sessionName } = await module("views/sessions/names.js");
const { quoted } = await module("core/command.js");

/** @param {(value: any) => string} format @param {[any, string][]} rows */
function each(format, rows) {
  for (const [value, text] of rows) assert.equal(format(value), text, String(value));
}

test("sizes", () => each(bytes, [
  [0, "0 B"], [1, "1 B"], [1023, "1023 B"], [1024, "1.0 KiB"], [1536, "1.5 KiB"],
  [1024 ** 2, "1.0 MiB"], [1024 ** 2 - 1, "1.0 MiB"], [1.25 * 1024, "1.2 KiB"], [1.75 * 1024, "1.8 KiB"],
  [5 * 1024 ** 5, "5.0 PiB"], [5000 * 1024 ** 5, "5000.0 PiB"], [-2048, "−2.0 KiB"],
  [null, "–"], [undefined, "–"], [NaN, "–"], [Infinity, "–"],
]));

test("times", () => each(time, [
  [0, "0 ns"], [1, "0.001 ns"], [999, "0.999 ns"], [12_345, "12.35 ns"], [1e6, "1 µs"],
  [12_345_678_900, "12.35 ms"], [2e12, "2 s"], [1234e12, "1234 s"], [12345e12, "12345 s"],
  [-5e9, "-5 ms"], [null, "–"], [NaN, "–"],
]));

test("as many digits as are asked for", () => {
  assert.equal(time(12_345_678_900, 9), "12.3456789 ms");
  assert.equal(time(12_345_678_900, 2), "12 ms");
});

test("counts and shares", () => {
  each(count, [[0, "0"], [1234567, "1,234,567"], [null, "–"]]);
  each(percent, [[0, "0.0%"], [0.1234, "12.3%"], [0.9994, "99.9%"], [0.9995, "100%"], [1, "100%"],
    [-0.5, "-50.0%"], [2.5, "250%"], [null, "–"]]);
  assert.deepEqual([counted(1, "step"), counted(2, "step"), counted(2, "entry", "entries")],
    ["1 step", "2 steps", "2 entries"]);
});

test("shares add up to a hundred as they are printed", () => {
  for (const parts of [[1, 1, 1], [1, 2, 3, 4, 5, 6, 7], [1, 1e9], [333, 333, 334], [0.1, 0.2]]) {
    const sum = shares(parts).reduce((total, text) => total + Number.parseFloat(text.replace("<0.1", "0")), 0);
    assert.ok(Math.abs(sum - 100) < 1e-9, `${parts}: ${shares(parts)}`);
  }
  assert.deepEqual(shares([1, 1, 1]), ["33.4%", "33.3%", "33.3%"]);
  assert.deepEqual(shares([1, 0, 1e9]), ["<0.1%", "0.0%", "100%"]);
  assert.deepEqual(shares([0, 0]), ["0.0%", "0.0%"]);
  assert.deepEqual(shares([]), []);
});

test("a date is that of the reader's clock", () => {
  assert.match(date("2026-11-20T16:57:05Z"), /^2026-11-(20|21) \d\d:\d\d$/);
  assert.equal(date("2026-11-20T06:07:05"), "2026-11-20 06:07");
  assert.equal(date("no date"), "–");
});

test("names in little room", () => {
  assert.equal(cut("step 12345", 20), "step 12345");
  assert.equal(cut("step 12345", 6), "…12345");
  assert.equal(cutMiddle("abcdefghij", 7), "abc…hij");
  assert.equal(cutMiddle("abcdefghij", 1), "ab…ij");
  assert.deepEqual([range(2, 5), range(5, 2)], [[2, 3, 4], []]);
});

test("a file's session has a name that the service takes", () => {
  assert.equal(sessionName("run.xplane.pb.gz", []), "run");
  assert.equal(sessionName("noleak.pt.trace.json", []), "noleak");
  assert.equal(sessionName("run.pb", ["run", "run_2"]), "run_3");
  assert.equal(freeName("run_7", ["run_7"]), "run_2");
  assert.equal(safeName("../a/b\\c\u202e"), "_a_b_c_");
  assert.equal(safeName(" .-hidden "), "hidden");
  assert.equal(safeName("..."), "upload");
  const long = safeName("ä".repeat(300));
  assert.equal(new TextEncoder().encode(long).length, 200);
});

test("a word of a command is quoted where a shell needs it", () => {
  each(quoted, [["a/b-c.pb", "a/b-c.pb"], ["a b", "'a b'"], ["it's", "'it'\\''s'"], ["", "''"], ["$(x)", "'$(x)'"]]);
});
