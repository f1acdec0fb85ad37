/** Reads the columns of the `timeline` tool's binary answers (docs/timeline.md, "The bytes"). */

const MAGIC = "PEAKTIME";
const VERSION = 1;
const HEADER_BYTES = 32;
const ENTRY_BYTES = 48;
const NAME_BYTES = 24;
const JSON_TYPE = 6;
const TYPES = /** @type {const} */ ({
  1: Uint8Array, 2: Int32Array, 3: Uint32Array, 4: BigInt64Array, 5: Float64Array,
});

/**
 * The columns by name: typed arrays over the answer's own bytes, single numbers, JSON values.
 *
 * A 64-bit number becomes a number, exact up to 2^53. Raises Error for what is no such answer.
 * @param {ArrayBuffer} buffer
 * @returns {Record<string, any>}
 */
export function readColumns(buffer) {
  const view = new DataView(buffer), text = new TextDecoder();
  if (buffer.byteLength < HEADER_BYTES || text.decode(new Uint8Array(buffer, 0, 8)) !== MAGIC
      || view.getUint32(8, true) !== VERSION) {
    throw new Error("the server's answer is of another version; load the page again");
  }
  /** @type {Record<string, any>} */
  const columns = {};
  const entries = view.getUint32(16, true);
  for (let at = HEADER_BYTES; at < HEADER_BYTES + ENTRY_BYTES * entries; at += ENTRY_BYTES) {
    const name = text.decode(new Uint8Array(buffer, at, NAME_BYTES)).replace(/\0+$/, "");
    const type = view.getUint32(at + 24, true);
    const isSingle = view.getUint32(at + 28, true) === 1;
    const offset = Number(view.getBigUint64(at + 32, true));
    const length = Number(view.getBigUint64(at + 40, true));
    if (type === JSON_TYPE) {
      columns[name] = JSON.parse(text.decode(new Uint8Array(buffer, offset, length)));
      continue;
    }
    const Values = TYPES[/** @type {keyof typeof TYPES} */ (type)];
    if (!Values) continue;
    const values = new Values(buffer, offset, length);
    columns[name] = isSingle ? Number(values[0]) : values;
  }
  return columns;
}
