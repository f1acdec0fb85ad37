/** Round times for the marks of an axis. */

const APART = 110;
const MOST_MARKS = 200;
const STEPS = [1, 2, 5];
/** @type {readonly (readonly [number, string])[]} */
const UNITS = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];

/**
 * Marks between `from` and `to` (ps) for `width` pixels, with their texts.
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @returns {{time: number, text: string}[]}
 */
export function timeMarks(from, to, width) {
  const step = roundStep(((to - from) * APART) / Math.max(width, 1));
  const [unit, name] = UNITS.find(([size]) => step >= size) ?? [1, "ps"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  /** @type {{time: number, text: string}[]} */
  const marks = [];
  // Counted, not added up: far from zero a small step is lost in a number's last digit.
  const first = Math.ceil(from / step);
  for (let place = 0; place <= MOST_MARKS; place++) {
    const time = (first + place) * step;
    if (time > to) break;
    if (time === marks.at(-1)?.time) continue;
    marks.push({ time, text: `${commas((time / unit).toFixed(digits))} ${name}` });
  }
  return marks;
}

/**
 * Round values from 0 to `top`, about `many`, with a binary unit: 0, 512 MiB, 1 GiB.
 * @param {number} top in bytes
 * @param {number} many
 * @returns {number[]}
 */
export function byteMarks(top, many) {
  const rough = Math.max(top, 1) / Math.max(many, 1);
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(rough) / 10 + 1e-9));
  const step = unit * (STEPS_OF_BYTES.find((one) => one * unit >= rough) ?? 1024);
  const marks = [];
  for (let value = 0; value <= top; value += step) marks.push(value);
  return marks;
}

const STEPS_OF_BYTES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** @param {number} rough */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return power * (STEPS.find((step) => step * power >= rough) ?? 10);
}

/** @param {string} text */
function commas(text) {
  const [whole = "", rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}
