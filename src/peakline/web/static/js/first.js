/**
 * What the address needs first, while the modules of the page are on their way: the first answers of
 * the service, and the modules of its view.
 */

import { parseAddress } from "./core/address.js";
import { askAhead, forgetAhead, planAhead, sessionPath } from "./core/api.js";
import { preload } from "./core/preload.js";
import { firstView } from "./core/views.js";
import { firstQuestions } from "./views/graph/state.js";
import { firstPage } from "./views/sessions/question.js";

/** What views ask of their session before they can draw anything. */
/** @type {Record<string, (params: Record<string, string>) => {tool: string, query: NonNullable<import("./core/api.js").Asked["query"]>}[]>} */
const FIRST = {
  job: () => [{ tool: "job", query: {} }, { tool: "job_steps", query: {} }],
  graph: firstQuestions,
  summary: () => [{ tool: "summary", query: { part: "facts" } }],
};

addEventListener("hashchange", forgetAhead, { once: true });
const address = parseAddress(location.hash);
// The questions go first: a browser sends six requests at a time.
if (address?.view === "sessions") {
  const sending = askForSessions(address.params);
  planAhead(sending);
  await sending;
} else if (address?.session) {
  planAhead(askForSession(address));
}
preload("page");
if (address) preload(address.view);

/** @param {Record<string, string>} params */
async function askForSessions(params) {
  const server = await askAhead("server");
  if (server) void askAhead("sessions", firstPage(params, server));
}

/** @param {import("./core/address.js").Address} address */
async function askForSession({ view, session, params }) {
  const root = params["root"] ?? "";
  const result = await askAhead(sessionPath(session), { root });
  if (!result) return;
  const shown = view === "summary" && !params["host"] ? firstView(result) : view;
  // Of several hosts the first is shown where the address names none.
  const host = shown === "job" ? "" : params["host"] || (result.hosts.length > 1 ? result.hosts[0] : "");
  for (const { tool, query } of FIRST[shown]?.(params) ?? []) {
    if (!result.tools.includes(tool)) continue;
    void askAhead(sessionPath(session, "tools", tool), { root, host, ...query });
  }
}
