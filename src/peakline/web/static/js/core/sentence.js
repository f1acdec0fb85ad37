/** A sentence of the headline: each noun leads to what it names. */

import { h } from "./dom.js";

/**
 * @typedef {object} Phrase
 * @property {string} text
 * @property {string} [view]
 * @property {Record<string, string | number>} [params]
 */
/**
 * @typedef {object} Sentence of the tools `headline` and `summary`
 * @property {string} kind
 * @property {string} text
 * @property {boolean} is_notable
 * @property {Phrase[]} phrases
 */

/**
 * @param {Sentence} sentence
 * @param {(view: string, params?: Record<string, string | number>) => string} link
 */
export function sentencePart({ kind, is_notable: isNotable, phrases }, link) {
  const grave = kind === "failure" ? " bad" : isNotable ? " notable" : "";
  return h("p", { class: `sentence${grave}`, dataset: { kind } }, ...phrases.map((one, place) => {
    // An allocator begins with its name as it is.
    const isName = place > 0 || !/^[a-z]+( |$)/.test(one.text);
    const text = isName ? one.text : `${one.text.charAt(0).toUpperCase()}${one.text.slice(1)}`;
    return one.view ? h("a", { href: link(one.view, one.params) }, text) : text;
  }), ".");
}
