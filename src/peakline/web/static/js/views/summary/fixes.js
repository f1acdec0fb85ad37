/** What to fix first, in full, and the further findings when they are asked for. */

import { fill, h } from "../../core/dom.js";
import { evidenceLinks, findingPart } from "../../core/finding.js";
import { counted, percent, worded } from "../../core/format.js";
import { sentencePart } from "../../core/sentence.js";
import { failed, loading } from "../../core/states.js";
import { WORDING } from "../../core/wording.js";

/** @typedef {import("./index.js").Summary} Summary */
/** @typedef {import("../../core/finding.js").Finding} Finding */
/** @typedef {import("../../shell/context.js").Context} Context */

/**
 * @param {Context} context
 * @param {Summary} summary
 */
export function fixesPanel(context, summary) {
  const { first, further_findings: more } = summary;
  if (!first.length && summary.notable.length) {
    return h("section", { class: "panel fixes" }, h("h2", {}, "Worth a look"),
      ...summary.notable.map((one) =>
        sentencePart(one, (view, params) => context.link(view, params))));
  }
  if (!first.length) {
    return h("section", { class: "panel fixes" },
      h("h2", {}, summary.memory || summary.time ? "Nothing stands out" : "Nothing to judge"),
      h("p", {}, judged(summary)),
      h("p", { class: "row-of" }, h("a", { href: context.link("sql") }, "Ask the tables in SQL")));
  }
  return h("section", { class: "panel fixes stack" },
    h("h2", {}, "Fix first"),
    h("ol", { class: "plain-list stack" }, ...first.map((finding) =>
      h("li", {}, gain(finding), findingPart(finding, evidenceLinks(finding,
        (view, params) => context.link(view, params)))))),
    more > 0 && furtherPart(context, first, more));
}

/** @param {Summary} summary */
function judged({ memory, programs, time }) {
  const phrase = WORDING.judged;
  if (!memory && !time) return phrase.nothing;
  if (!time) return phrase.memory;
  const steps = time.times ? "" : ` ${phrase.without_steps}`;
  if (memory) return `${phrase.both}${steps}`;
  return `${programs?.length ? phrase.time : phrase.time_alone}${steps}`;
}

/** @param {Finding & {about: string}} finding */
function gain({ about, gain_share: share }) {
  if (!share) return h("p", { class: "quiet gain" }, about === "memory" ? "Memory" : "Time");
  return h("p", { class: "quiet gain" }, about === "memory"
    ? worded(WORDING.summary.gain_memory, { share: percent(share) })
    : worded(WORDING.summary.gain_time, { share: percent(share) }));
}

/**
 * @param {Context} context
 * @param {Finding[]} first those that are shown already
 * @param {number} more
 */
function furtherPart(context, first, more) {
  const body = h("div", { class: "stack" });
  const part = h("details", {}, h("summary", {}, counted(more, "further finding")), body);
  part.addEventListener("toggle", () => {
    if (part.open && !body.childElementCount) void load();
  });
  return part;

  async function load() {
    fill(body, loading("Reading the findings"));
    try {
      const [memory, time] = await Promise.all([
        context.tool("memory_findings"), context.tool("time_findings", { steps: false }),
      ]);
      /** @type {Finding[]} */
      const all = [
        ...memory.data.findings,
        ...time.data.hosts.flatMap((/** @type {any} */ host) => host.findings),
      ];
      const known = new Set(first.map(key));
      fill(body, ...all.filter((one) => !known.has(key(one))).map((one) =>
        findingPart(one, evidenceLinks(one, (view, params) => context.link(view, params)))));
    } catch (error) {
      if (!context.signal.aborted) fill(body, failed(error, () => void load()));
    }
  }
}

/** @param {Finding} finding */
function key({ kind, title }) {
  return `${kind}\n${title}`;
}
