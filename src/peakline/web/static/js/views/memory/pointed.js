/** Which rows of the table and which parts of the picture are about the same. */

/** @typedef {import("./model.js").Pointed} Pointed */

/** What a layer may be by, of the columns of a buffer. */
const TEXTS = ["op", "scope", "region_type", "data_type", "shape", "category", "module", "function",
  "input_shape"];

/**
 * What a row is about: a buffer with the groups that it is in, or a group.
 * @param {any} row
 * @param {string} group what rows are by
 * @returns {Pointed}
 */
export function pointedOf(row, group) {
  return group === "buffer"
    ? { record: row.record, texts: Object.fromEntries(TEXTS.map((name) => [name, row[name]])) }
    : { record: null, texts: { [group]: row.key } };
}

/**
 * Whether a row is about what is pointed at; of a layer all its buffers are.
 * @param {any} row
 * @param {string} group what rows are by
 * @param {Pointed | null} pointed
 */
export function isPointed(row, group, pointed) {
  if (!pointed) return false;
  const { record, texts } = pointed;
  if (group !== "buffer") return group in texts && texts[group] === row.key;
  if (record !== null) return row.record === record;
  const names = Object.keys(texts);
  return names.length > 0 && names.every((name) => TEXTS.includes(name) && row[name] === texts[name]);
}
