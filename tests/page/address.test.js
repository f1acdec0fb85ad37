import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { SESSION_VIEWS, changed, formatAddress, number, parseAddress } =
  await module("core/address.js");
const { comparedOf, comparedParams, textsOf } = await module("core/compared.js");
const graph = await module("views/graph/state.js");

test("an address names the list, a comparison, or a view of a session", () => {
  const list = { view: "sessions", session: "", params: {} };
  for (const hash of ["", "#", "#/", "/", "#/?"]) assert.deepEqual(parseAddress(hash), list);
  assert.deepEqual(parseAddress("#/compare?first=a"),
    { view: "compare", session: "", params: { first: "a" } });
  assert.deepEqual(parseAddress("#/session/run"), { view: "summary", session: "run", params: {} });
  assert.deepEqual(parseAddress("#/session/run/memory/?at=5&group=op"),
    { view: "memory", session: "run", params: { at: "5", group: "op" } });
});

test("what names nothing is null", () => {
  for (const hash of ["#/nosuch", "#/session", "#/session/", "#/session/a/nosuch",
    "#/session/a/memory/more", "#/compare/more"]) {
    assert.equal(parseAddress(hash), null, hash);
  }
});

test("whatever a session is called, its address leads back to it", () => {
  for (const session of ["run", "a b", "ä/ö", "50%", "?x=1", "#", "<img src=x>", "..", "日本"]) {
    for (const view of SESSION_VIEWS) {
      const address = { view, session, params: { q: session, at: "0" } };
      assert.deepEqual(parseAddress(formatAddress(address)), address);
    }
  }
});

test("a name that is no encoded text is taken as it stands", () => {
  assert.equal(parseAddress("#/session/50%/memory").session, "50%");
});

test("parameters without a value are left out", () => {
  assert.equal(formatAddress({ view: "sessions", session: "", params: { q: "" } }), "#/");
  assert.equal(formatAddress({ view: "compare", session: "", params: { first: "a b" } }),
    "#/compare?first=a+b");
  const params = { at: "5", group: "op", in: "x" };
  assert.deepEqual(changed(params, { at: null, group: "", in: undefined }), {});
  assert.deepEqual(changed(params, { at: 0, in: false }), { at: "0", group: "op" });
  assert.deepEqual(params, { at: "5", group: "op", in: "x" });
});

test("a whole number of an address, or null", () => {
  assert.deepEqual(["12", "-3", "0", "1234567890123456"].map(number), [12, -3, 0, 1234567890123456]);
  for (const text of ["", undefined, "1.5", "1e3", " 1", "x", "12345678901234567", "+1"]) {
    assert.equal(number(text), null, text);
  }
});

test("compared sessions keep their order and their names", () => {
  for (const names of [[], ["a"], ["a", "b"], ["a", "b", "c,d", "e%2C", "f"]]) {
    const params = textsOf(comparedParams(names));
    assert.deepEqual(comparedOf(params), names);
    const hash = formatAddress({ view: "compare", session: "", params });
    assert.deepEqual(comparedOf(parseAddress(hash).params), names);
  }
});

test("the state of a graph comes back from its parameters", () => {
  const whole = { graph: "main", fn: null, open: [1, 4], item: 4, color: "memory", schedule: true,
    only: { way: "around", item: 7, depth: 2 }, q: "dot" };
  const closed = { ...whole, open: [], only: { way: "inputs", item: 7, depth: 1 }, schedule: false };
  const first = { graph: null, fn: null, open: null, item: null, color: null, schedule: false,
    only: null, q: "" };
  for (const state of [whole, closed, first]) {
    assert.deepEqual(graph.stateOf(changed({}, graph.paramsOf(state))), state);
  }
});

test("of a graph's parameters only what means something counts", () => {
  const state = graph.stateOf({ color: "toString", only: "nosuch.3", item: "x", open: "1.x.2" });
  assert.deepEqual([state.color, state.only, state.item, state.open], [null, null, null, [1, 2]]);
  assert.equal(graph.stateOf({ only: "around.3.99" }).only.depth, 3);
  assert.deepEqual(graph.pictureQuery({ ...state, open: [] }),
    { view: "scopes", opened: "none", reveal: null });
});
