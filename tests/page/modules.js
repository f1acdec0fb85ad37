/** The page's own modules, those that need no document: `await module("core/address.js")`. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";

// What the theme asks for when it is loaded; no test depends on the answer.
globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} });

/** @param {string} path below static/js of the installed package */
export function module(path) {
  return import(pathToFileURL(join(process.env.PEAKLINE_PAGE_MODULES, path)).href);
}
