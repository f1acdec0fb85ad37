/**
 * Long names in little room: the middle goes, since what sets ops and files apart is at their ends.
 *
 * The whole name is in the element, for whoever copies it, searches it or hears it.
 */

import { h } from "./dom.js";

/** Shorter names are cut at their end, if at all. */
const SHORT = 24;
const LONGEST_TAIL = 18;
const SHORTEST_TAIL = 10;
/** What a character takes at most, but for a few. */
const WIDEST_EM = 0.6;

/**
 * A name as an element that shows its begin and its end, whatever room it has.
 * @param {string} name
 * @returns {HTMLElement | string}
 */
export function elided(name) {
  if (name.length <= SHORT) return name;
  const at = tailOf(name);
  const room = `calc(100% - ${((name.length - at) * WIDEST_EM).toFixed(1)}em)`;
  return h("span", { class: "elided", title: name },
    h("span", { class: "begin", style: { maxWidth: room } }, name.slice(0, at)), name.slice(at));
}

/**
 * Where the end begins that is always shown: at the last part of a path if that is neither short nor
 * long, else as many characters as are read at a glance.
 * @param {string} name
 */
function tailOf(name) {
  for (const mark of ["/", ".", ":", "(", " "]) {
    let at = name.lastIndexOf(mark);
    // An end such as `/MatMul_1` says more with the part before it.
    while (at > 0 && name.length - at < SHORTEST_TAIL) at = name.lastIndexOf(mark, at - 1);
    if (at > 0 && name.length - at <= LONGEST_TAIL) return at;
  }
  return name.length - Math.min(LONGEST_TAIL, Math.ceil(name.length / 2));
}
