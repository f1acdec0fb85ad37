/** What the server was started with. */

import { json } from "./api.js";

/**
 * @typedef {object} ServerDocument
 * @property {string} version
 * @property {string[]} roots names of the log directories
 * @property {boolean} read_only captures and uploads are refused
 * @property {number} max_upload_bytes
 * @property {number} max_capture_s
 * @property {number} profiler_port where hosts are asked to record
 * @property {string[]} workers hosts with a profiler of their own
 * @property {string | null} source the path that `peakline view` was given
 * @property {boolean} source_is_logdir
 */

/** @type {Promise<ServerDocument> | null} */
let known = null;

/**
 * Asked once, as it does not change while the server runs. Raises ProblemError.
 * @returns {Promise<ServerDocument>}
 */
export function serverDocument() {
  if (!known) {
    known = json("server").then(({ data }) => data);
    known.catch(() => void (known = null));
  }
  return known;
}
