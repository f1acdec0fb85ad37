/** Numbers as people read them, in the same words as the command line. */

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
/** @type {readonly (readonly [number, string])[]} */
const TIMES = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"]];

/**
 * A number of bytes: `1.5 GiB`.
 * @param {number | null | undefined} value
 */
export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  let size = Math.abs(value), unit = 0;
  while (unit < SIZES.length - 1 && size >= 1023.95) {
    size /= 1024;
    unit += 1;
  }
  const sign = value < 0 ? "−" : "";
  return `${sign}${unit === 0 ? size : tenths(size)} ${SIZES[unit]}`;
}

/**
 * Picoseconds: `12.35 ms`. `digits` are those that count.
 * @param {number | null | undefined} value
 */
export function time(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  for (const [unit, name] of TIMES) {
    if (Math.abs(value) >= unit) return `${significant(value / unit, digits)} ${name}`;
  }
  return `${significant(value / 1e3, digits)} ns`;
}

/**
 * A whole number with separators: `12,345`.
 * @param {number | null | undefined} value
 */
export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/**
 * A share of 1 as percent: `12.3%`.
 * @param {number | null | undefined} value
 */
export function percent(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return `${(100 * value).toFixed(Math.abs(value) >= 0.9995 ? 0 : 1)}%`;
}

/**
 * What share of their sum each of `parts` is. As printed they add up to 100: each is rounded down,
 * and those that lose most by that are rounded up instead, as the command line does.
 * @param {readonly number[]} parts
 * @returns {string[]}
 */
export function shares(parts) {
  const whole = parts.reduce((sum, part) => sum + part, 0);
  if (!(whole > 0)) return parts.map(() => percent(0));
  const exact = parts.map((part) => (1000 * part) / whole);
  const result = exact.map(Math.floor);
  const lost = exact.map((part, place) => part - (result[place] ?? 0));
  const order = [...parts.keys()].sort((one, other) => (lost[other] ?? 0) - (lost[one] ?? 0));
  const left = 1000 - result.reduce((sum, part) => sum + part, 0);
  for (const place of order.slice(0, left)) result[place] = (result[place] ?? 0) + 1;
  return result.map((part, place) => (part || !parts[place] ? percent(part / 1000) : "<0.1%"));
}

/**
 * A date of the service (ISO 8601) in the reader's own time zone.
 * @param {string} iso
 */
export function date(iso) {
  const result = new Date(iso);
  if (Number.isNaN(result.getTime())) return "–";
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return `${result.getFullYear()}-${two(result.getMonth() + 1)}-${two(result.getDate())} `
    + `${two(result.getHours())}:${two(result.getMinutes())}`;
}

/**
 * A phrase of the server as a sentence of its own: `Nothing ran.`; of nothing there is none.
 * @param {string | null | undefined} phrase
 */
export function sentence(phrase) {
  return phrase ? `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.` : "";
}

/**
 * A sentence of `WORDING` with values in place of their names: `worded("of {whole}", {whole: "2 s"})`.
 * @param {string} text
 * @param {Record<string, string | number>} values
 */
export function worded(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/**
 * @param {string} one
 * @param {number} number
 */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/**
 * @param {number} value
 * @param {number} digits
 */
function significant(value, digits) {
  const before = Math.max(1, Math.floor(Math.log10(Math.abs(value) || 1)) + 1);
  return String(Number(value.toFixed(Math.max(0, digits - before))));
}

/**
 * With one decimal, the even one where both are as near, as the command line rounds: 1.25 is 1.2.
 * @param {number} value
 */
function tenths(value) {
  // Only an odd number of quarters lies in the middle exactly.
  if (Math.abs(value * 4) % 2 !== 1) return value.toFixed(1);
  return (Math.round(value * 5) / 5).toFixed(1);
}
