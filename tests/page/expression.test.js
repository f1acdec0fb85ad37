import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { expression } = await module("core/expression.js");
const { matcherOf } = await module("views/timeline/arrangement.js");

const SOURCES = ["", "a", "abc", "a.c", "a|b", "(ab)+", "(?:ab)*c", "^a", "a$", "^$", "^a|b$", "a{2}", "a{1,3}b",
  "a{2,}", "(a|b){2}c", "[abc]+", "[^abc]", "[a-c0-9]", "[a-]", "\\d+", "\\D", "\\w+\\s\\w", "\\.", "a\\|b",
  "(a?){3}b", "x*?y", "(a+)+$", "a(b(c|d))?e", "\\t"];
const TEXTS = ["", "a", "b", "abc", "aXc", "ababc", "aaab", "xxabc", "abcx", "a b", "A1", "ABC", "a.b", "a|b", "]", "-",
  "aaaa", "ace", "abce", "abde", "ae", "\t", "xy", "12 34"];

test("an expression finds what the browser's finds", () => {
  for (const source of SOURCES) {
    const matches = expression(source), expected = new RegExp(source, "i");
    for (const text of TEXTS) {
      assert.equal(matches(text), expected.test(text), `/${source}/ in ${JSON.stringify(text)}`);
    }
  }
});

test("a ] right behind the [ is one of the letters, as in RE2", () => {
  assert.deepEqual(["]", "a"].map(expression("[]]")), [true, false]);
  assert.deepEqual(["]", "a"].map(expression("[^]]")), [false, true]);
});

test("it takes time in proportion to the text", () => {
  const matches = expression("(a+)+b");
  const text = "a".repeat(500);
  assert.equal(matches(text), false);
  assert.equal(matches(`${text.slice(1)}b`), true);
});

test("what is no expression is refused in a line", () => {
  const wrong = { "(": /\( without its \)/, ")": /\) without its \(/, "[a": /\[ without its \]/, "*a": /repeats/,
    "a\\": /at the end/, "[b-a]": /no range/, "\\1": /not known/, "(?=a)": /lookaround/, "a{3,2}": /smaller number/,
    "a{1000}": /at most/, "(a{100}){100}": /too much/ };
  for (const [source, why] of Object.entries(wrong)) {
    assert.throws(() => expression(source), (error) => {
      assert.ok(error instanceof SyntaxError);
      assert.match(error.message, why);
      assert.ok(!error.message.includes("\n"));
      return true;
    }, source);
  }
  assert.throws(() => expression("a".repeat(201)), /longer/);
});

test("a filter of lanes is pieces, expressions, or what may not match", () => {
  const gpu = "/device:GPU:0 / Stream 12", host = "/host:CPU / python";
  const rows = { "": [true, true], gpu: [true, false], "gpu*stream": [true, false], "stream*gpu": [false, false],
    "gpu|python": [true, true], "-gpu": [false, true], "/stream [0-9]+$/": [true, false],
    "-/stream \\d/": [false, true], "gpu|-/1[0-9]/": [false, false], " PYTHON ": [false, true],
    "/zz|python/": [false, true], "cpu|": [false, true] };
  for (const [pattern, found] of Object.entries(rows)) {
    const matches = matcherOf(pattern);
    assert.deepEqual([matches(gpu), matches(host)], found, pattern);
    assert.deepEqual([matches(gpu), matches(host)], found, `${pattern} again`);
  }
  assert.throws(() => matcherOf("/(/"), SyntaxError);
});
