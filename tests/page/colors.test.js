import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.js";

const { CATEGORIES, REST, inkOn } = await module("core/colors.js");
const { bufferColors, isOneGroup, neighboursOf } = await module("views/memory/buffer-colors.js");
const { colorOf, cssColor, nameShades, shadesOf } = await module("views/timeline/colors.js");

/** The contrast of WCAG 2 between two colors `[r, g, b]`. */
function contrast(one, other) {
  const [high, low] = [one, other].map((color) => {
    const [red, green, blue] = color.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }).sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const parsed = (color) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));

test("there are twelve colors of categories and one for the rest", () => {
  assert.equal(new Set(CATEGORIES).size, 12);
  assert.ok(!CATEGORIES.includes(REST));
});

test("ink is whichever of black and white is read more easily", () => {
  for (let number = 0; number < 4096; number += 7) {
    const color = `#${number.toString(16).padStart(3, "0").replace(/./g, "$&$&")}`;
    const black = contrast(parsed(color), [0, 0, 0]), white = contrast(parsed(color), [255, 255, 255]);
    const own = inkOn(color) === "#000000" ? black : white;
    assert.ok(own >= Math.max(black, white) - 0.02, color);
    assert.ok(own > 4.5, color);
  }
});

test("a name has the same color always, and many names have many", () => {
  const colors = Array.from({ length: 1000 }, (_, number) => colorOf(`op_${number}`));
  assert.deepEqual(colors, colors.map((_, number) => colorOf(`op_${number}`)));
  assert.equal(new Set(colors).size, 32);
  assert.ok(Math.min(...colors) >= 0 && Math.max(...colors) < 32);
});

test("colors of names are seen on light and dark, and texts on them", () => {
  const { css, ink } = nameShades("#ffffff");
  assert.equal(css.length, 32);
  css.forEach((color, place) => {
    assert.ok(contrast(parsed(color), [255, 255, 255]) > 2.9, color);
    assert.ok(contrast(parsed(color), [0, 0, 0]) > 5, color);
    assert.ok(contrast(parsed(color), parsed(ink[place])) > 5, color);
    assert.equal(cssColor(place), `rgb(${parsed(color).join(", ")})`);
  });
});

test("pixels have red, green, blue and full alpha; what is dimmed is nearer to the ground", () => {
  const { single, merged, dim, dimMerged } = shadesOf(["#102030"], "#ffffff");
  assert.equal(single[0], 0xff302010);
  const red = [single, merged, dim, dimMerged].map((shades) => shades[0] & 255);
  assert.deepEqual([...red].sort((one, other) => one - other), red);
  assert.ok(red[3] < 255);
});

test("buffers that touch have other colors, whatever else is in view", () => {
  const records = Array.from({ length: 60 }, (_, number) => number * 12);
  const neighbours = records.slice(1).map((_, number) => [number, number + 1]);
  const colors = bufferColors(records, neighbours);
  for (const [one, other] of neighbours) assert.notEqual(colors[one], colors[other]);
  assert.equal(bufferColors([7], [])[0], bufferColors([3, 7], [])[1]);
  assert.equal(bufferColors([null], [])[0], CATEGORIES[0]);
});

test("neighbours are those that lie on each other at a pixel", () => {
  // The first lives all the time, the second in its begin, the third after it.
  assert.deepEqual(neighboursOf({ first: [0, 0, 5], last: [10, 5, 10] }, 10), [[0, 1], [0, 2]]);
  assert.deepEqual(neighboursOf({ first: [], last: [] }, 10), []);
});

test("where no op tells buffers apart their colors do not stand for ops", () => {
  assert.ok(isOneGroup([]));
  assert.ok(isOneGroup(["MatMul"]));
  assert.ok(isOneGroup(["", "(before profile)"]));
  assert.ok(!isOneGroup(["", "MatMul"]));
});
