/** All about the session that is chosen in the list. */

import { copyButton } from "../../core/copy.js";
import { h } from "../../core/dom.js";
import { bytes, count, counted, date, sentence, time } from "../../core/format.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { firstView, viewsOf } from "../../core/views.js";
import { WORDING } from "../../core/wording.js";

const SHOWN_HOSTS = WORDING.limits.session_hosts;

/**
 * @param {import("./list.js").Row} row
 * @param {import("./summaries.js").State} state
 * @param {(name: string, view: string, params?: Record<string, string | number>) => string} link
 * @param {() => void} onClose
 * @returns {HTMLElement}
 */
export function detailsOf(row, state, link, onClose) {
  const { session, name } = row;
  const { glance } = state;
  const hosts = session.hosts;
  const shownHosts = hosts.slice(0, SHOWN_HOSTS).join(", ")
    + (hosts.length > SHOWN_HOSTS ? ` and ${hosts.length - SHOWN_HOSTS} more` : "");
  // Without a host the summary of a job is the job.
  const first = firstView(session) === "summary" ? [{ view: "summary", text: "Summary" }] : [];
  const links = [...first, ...viewsOf(session)];
  return h("section", { class: "panel details stack", "aria-label": `Session ${name}` },
    h("div", { class: "row-of" },
      h("h2", { class: "grow name" }, name),
      copyButton("Copy link", () => link(name, "summary")),
      h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: onClose }, "×")),
    h("nav", { class: "row-of", "aria-label": `Views of ${name}` },
      ...links.map(({ view, text }) => h("a", { href: link(name, view) }, text))),
    h("dl", { class: "facts" },
      fact(hosts.length === 1 ? "Host" : counted(hosts.length, "host"), shownHosts),
      fact("Written", row.modified ? date(row.modified) : "–"),
      fact("Size", bytes(row.bytes)),
      glance && fact("Duration", time(glance.duration)),
      glance?.steps && fact("Steps", count(glance.steps),
        glance.step ? `${time(glance.step, 3)} each (median)` : ""),
      glance && glance.peak !== null && fact("Memory peak", bytes(glance.peak), glance.peakOf)),
    glance?.straggler && h("p", {}, sentence(glance.straggler)),
    ...findings(state, (view, params) => link(name, view, params), hosts.length > 1));
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} [more]
 */
function fact(name, value, more = "") {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value),
    more && h("dd", { class: "more" }, more));
}

/**
 * @param {import("./summaries.js").State} state
 * @param {import("../../core/finding.js").Link} link
 * @param {boolean} isMany hosts
 */
function findings({ glance, kind, reason }, link, isMany) {
  if (kind === "failed") return [h("p", { class: "bad" }, reason ?? "")];
  if (!glance) {
    return kind === "large"
      ? [h("p", { class: "quiet" }, "It is large: “Look inside” in its row, or open it.")] : [];
  }
  const { error, warning, info } = glance.findings;
  const total = error + warning + info;
  if (!total && glance.notable.length) {
    return [h("h3", {}, "Worth a look"), ...glance.notable.map((text) => h("p", {}, `${text}.`))];
  }
  if (!total) return [h("p", { class: "quiet" }, "Nothing stands out.")];
  const more = total - glance.first.length;
  return [
    h("h3", {}, more > 0 ? `To fix first, of ${counted(total, "finding")}` : "To fix first"),
    ...glance.first.map((finding) => {
      const ofHost = (/** @type {string} */ view, /** @type {Record<string, string | number>} */
        params = {}) => link(view, isMany ? { host: finding.host, ...params } : params);
      const part = findingPart(finding, evidenceLinks(finding, ofHost));
      if (isMany) part.prepend(h("div", { class: "quiet" }, finding.host));
      return part;
    }),
  ];
}
