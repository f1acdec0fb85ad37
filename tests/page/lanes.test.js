import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { formatRanges, parseRanges } = await module("views/timeline/ranges.js");
const { Layout, PINNED, ROW_PX } = await module("views/timeline/layout.js");

/** Two planes; the second line of the host has no timed event. */
function lanes() {
  return {
    plane_name: ["/device:GPU:0", "/host:CPU"], plane_kind: ["device", "host"],
    line_name: ["Stream 1", "Stream 2", "python", "idle", "worker"], line_plane: [0, 0, 1, 1, 1],
    line_native_id: [1, 2, 3, 4, null], line_events: [10, 5, 7, 0, 3], line_rows: [1, 2, 4, 1, 1],
  };
}

const shown = (layout) => layout.entries.filter(({ line }) => line).map(({ line }) => line.line);

test("numbers as ranges, and back", () => {
  assert.equal(formatRanges([3, 0, 9, 8, 10, 8]), "0,3,8-10");
  assert.equal(formatRanges([]), "");
  for (const numbers of [[], [0], [0, 1, 2], [5, 7, 9], [1, 2, 4, 5, 6, 9]]) {
    assert.deepEqual(parseRanges(formatRanges(numbers), 10), numbers);
  }
  assert.deepEqual(parseRanges("1-99, 3,x,-2,4-2", 4), [1, 2, 3, 3]);
});

test("lines lie below the heads of their planes, without gaps or overlaps", () => {
  const layout = new Layout(lanes());
  assert.deepEqual(shown(layout), [0, 1, 2, 4]);
  assert.equal(layout.emptyLines, 1);
  assert.equal(layout.planes[1].events, 10);
  let top = 0;
  for (const entry of layout.entries) {
    assert.equal(entry.top, top);
    top += entry.height;
  }
  assert.equal(layout.height, top);
});

test("a place in the picture is a line's row, and the other way round", () => {
  const layout = new Layout(lanes());
  for (const [line, rows] of [[0, 1], [1, 2], [2, 4], [4, 1]]) {
    for (let row = 0; row < rows; row++) {
      const y = layout.topOf(line, row);
      for (const at of [y, y + ROW_PX - 1]) {
        const place = layout.at(at);
        assert.deepEqual([place.line.line, place.row], [line, row]);
      }
    }
  }
  assert.equal(layout.at(0), null);
  assert.equal(layout.at(layout.height + 5), null);
  assert.equal(layout.topOf(3, 0), null);
});

test("what lies between two heights", () => {
  const layout = new Layout(lanes());
  for (let top = 0; top < layout.height; top += 7) {
    const expected = layout.entries.filter((one) => one.top < top + 20 && one.top + one.height > top);
    assert.deepEqual(layout.between(top, top + 20), expected);
  }
});

test("folded lines have one row, folded planes none, and the address says which", () => {
  const layout = new Layout(lanes());
  layout.toggleLine(2);
  layout.togglePlane(0);
  assert.deepEqual(shown(layout), [2, 4]);
  assert.equal(layout.entries.find(({ line }) => line?.line === 2).rows, 1);
  assert.equal(layout.folded, "p0,2");
  const other = new Layout(lanes());
  other.setFolded(layout.folded);
  assert.deepEqual(other.entries, layout.entries);
  assert.ok(other.unfold(1, 0));
  assert.ok(!other.unfold(1, 0));
  assert.ok(other.unfold(2, 3));
  assert.equal(other.folded, "");
});

test("lines are pinned, hidden, moved and filtered, and the address says it", () => {
  const layout = new Layout(lanes()), { arrangement } = layout;
  arrangement.togglePin(4);
  arrangement.hide([1]);
  arrangement.move(0, 1);
  layout.place();
  assert.equal(layout.entries[0].plane, PINNED);
  assert.deepEqual(shown(layout), [4, 0, 2]);
  assert.equal(arrangement.away, 1);
  const again = new Layout(lanes());
  again.arrangement.set(arrangement.state);
  again.place();
  assert.deepEqual(shown(again), shown(layout));
  arrangement.filter("python");
  layout.place();
  assert.deepEqual(shown(layout), [4, 2]);
  arrangement.filter("/(/");
  assert.match(arrangement.problem, /no expression/);
  layout.place();
  assert.deepEqual(shown(layout), [4, 0, 2]);
  arrangement.reset();
  layout.place();
  assert.deepEqual(shown(layout), [0, 1, 2, 4]);
});

test("a line that is moved changes places with its neighbour in the plane", () => {
  const layout = new Layout(lanes()), { arrangement } = layout;
  arrangement.move(4, -1);
  layout.place();
  assert.deepEqual(shown(layout), [0, 1, 4, 2]);
  arrangement.move(4, -1);
  layout.place();
  assert.deepEqual(shown(layout), [0, 1, 4, 2]);
});

test("a line that is meant is shown whatever hides it", () => {
  const { arrangement } = new Layout(lanes());
  arrangement.show([0]);
  assert.ok(arrangement.reveal(2));
  assert.ok(!arrangement.hidden.has(2));
  arrangement.filter("Stream");
  assert.ok(arrangement.reveal(4));
  assert.equal(arrangement.only, "");
  assert.ok(!arrangement.reveal(4));
});

test("of an address only lines with events count", () => {
  const { arrangement } = new Layout(lanes());
  arrangement.set({ pin: "3,2,99,2", hide: "0-99", order: "", only: "" });
  assert.deepEqual(arrangement.pinned, [2]);
  assert.deepEqual([...arrangement.hidden], [0, 1, 2, 3, 4]);
});
