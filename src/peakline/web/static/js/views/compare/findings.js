/** The findings that only one of two sessions has, and those that are worse in the later one. */

import { h } from "../../core/dom.js";
import { counted } from "../../core/format.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("../../core/finding.js").Finding} Finding */

/**
 * @param {any} data
 * @param {import("./index.js").Links} links
 * @returns {HTMLElement}
 */
export function findingsPart({ findings, time }, links) {
  const all = (/** @type {"new" | "worse" | "gone"} */ which) =>
    [...findings[which], ...time?.findings[which] ?? []];
  const news = all("new"), worse = all("worse"), gone = all("gone");
  return h("section", { class: "panel", "aria-label": "Findings" },
    h("h2", {}, "Findings"),
    news.length + worse.length + gone.length ? h("div", { class: "columns" },
      column(`New: ${counted(news.length, "finding")}`, news, links.after),
      worse.length > 0
        && column(`Worse: ${counted(worse.length, "finding")}`, worse, links.after),
      column(`Gone: ${counted(gone.length, "finding")}`, gone, links.before))
      : h("p", { class: "quiet" }, WORDING.compare.same_findings));
}

/**
 * @param {string} title
 * @param {Finding[]} result
 * @param {import("../../core/finding.js").Link} link
 */
function column(title, result, link) {
  return h("div", { class: "stack" }, h("h3", {}, title),
    ...result.map((finding) => findingPart(finding, evidenceLinks(finding, link))),
    !result.length && h("p", { class: "quiet" }, "none"));
}
