/** The queries asked before on this browser, the latest first. */

import { fill, h } from "../../core/dom.js";
import { counted, date } from "../../core/format.js";

const KEY = "peakline.sql.history";
const RETAINED = 50;

/** @typedef {{query: string, rows: number, when: string}} Past */

/** @returns {Past[]} */
function past() {
  try {
    const result = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(result) ? result.filter((one) => typeof one?.query === "string") : [];
  } catch {
    return [];
  }
}

/**
 * @param {string} query
 * @param {number} rows
 */
export function remember(query, rows) {
  const others = past().filter((one) => one.query !== query);
  const retained = [{ query, rows, when: new Date().toISOString() }, ...others].slice(0, RETAINED);
  try {
    localStorage.setItem(KEY, JSON.stringify(retained));
  } catch {
    // The browser's store is full or closed: the page works without a history.
  }
}

/**
 * @param {(query: string) => void} run
 * @returns {{element: HTMLElement, refresh: () => void}}
 */
export function historyPart(run) {
  const element = h("details", { class: "panel" });
  refresh();
  return { element, refresh };

  function refresh() {
    const result = past();
    element.hidden = !result.length;
    fill(element, h("summary", {}, `Asked before (${result.length})`),
      h("ul", { class: "plain-list queries" }, ...result.map(({ query, rows, when }) => h("li", {},
        h("button", { type: "button", class: "plain mono", title: query,
          onclick: () => run(query) }, query.replace(/\s+/g, " ")),
        h("span", { class: "quiet note" }, `${counted(rows, "row")}, ${date(when)}`)))),
      h("button", { type: "button", onclick: () => {
        localStorage.removeItem(KEY);
        refresh();
      } }, "Forget them"));
  }
}
