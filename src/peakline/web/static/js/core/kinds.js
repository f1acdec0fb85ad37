/** What a column of numbers measures, told by its name as the tables of the service spell it. */

import { bytes, count, percent, time } from "./format.js";

/** @typedef {import("./table.js").Column} Column */

const TIME = /(^|[_(])ps\)?$/;
const BYTES = /(^|[_(])bytes($|[_)])/;
const SHARE = /(^|_)(share|fragmentation|confidence|often)$/;
const PLAIN = /(^|_)(id|address|pid|tid|epoch)$/;
const WIDEST_REM = 32;

/**
 * How the values of a column are read; text where they are no numbers.
 * @param {string} name
 * @param {unknown[]} values
 * @returns {NonNullable<Column["kind"]>}
 */
export function kindOf(name, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (!known.length || known.some((value) => typeof value !== "number")) return "text";
  if (TIME.test(name)) return "time";
  if (BYTES.test(name)) return "bytes";
  if (SHARE.test(name)) return "percent";
  return known.every(Number.isInteger) ? "count" : "number";
}

/**
 * What a person calls a column: its name without the unit, which its values carry.
 * @param {string} name
 */
export function titleOf(name) {
  const phrase = name.replace(/_ps$/, "").replace(/_/g, " ").trim();
  return phrase.charAt(0).toUpperCase() + phrase.slice(1);
}

/**
 * One value of a column in words.
 * @param {string} name
 * @param {unknown} value
 */
export function valueText(name, value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") {
    return Array.isArray(value) ? value.map(String).join(", ") : String(value);
  }
  if (PLAIN.test(name)) return String(value);
  switch (kindOf(name, [value])) {
    case "time": return time(value);
    case "bytes": return bytes(value);
    case "percent": return percent(value);
    case "count": return count(value);
    default: return value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
  }
}

/**
 * The columns of rows that are objects, for a table: kinds and widths by what they hold.
 * @param {any[]} rows
 * @param {string[]} names the keys, in order
 * @param {(name: string) => string} [title]
 * @returns {Column[]}
 */
export function columnsOf(rows, names, title = titleOf) {
  const seen = rows.slice(0, 500);
  return names.map((key) => {
    const kind = kindOf(key, seen.map((row) => row[key]));
    /** @type {Column} */
    const column = { key, title: title(key), kind };
    if (kind !== "text") {
      const needed = Math.max(7.5, 0.6 * column.title.length + 2);
      column.width = `${needed.toFixed(1)}rem`;
      if (PLAIN.test(key)) column.cell = (row) => valueText(key, row[key]);
      return column;
    }
    const longest = Math.max(column.title.length + 3,
      ...seen.map((row) => valueText(key, row[key]).length));
    const needed = Math.min(Math.max(0.56 * longest + 1.5, 5), WIDEST_REM);
    column.width = `minmax(${needed.toFixed(1)}rem, ${longest > 24 ? "2fr" : "1fr"})`;
    column.cell = (row) => (row[key] === null ? "" : valueText(key, row[key]));
    return column;
  });
}
