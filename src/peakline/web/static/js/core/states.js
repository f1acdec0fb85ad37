/** What a person meets besides an answer: loading, nothing yet, partly failed, an error. */

import { h } from "./dom.js";
import { ProblemError } from "./api.js";
import { time } from "./format.js";

const PATIENCE_MS = 250;

/**
 * A part that is being loaded. It shows nothing for a moment, so that quick answers do not flicker,
 * then a bar, and how long it has taken.
 * @param {string} what such as "Reading the profile"
 * @returns {HTMLElement}
 */
export function loading(what) {
  const passed = h("span", { class: "passed" });
  const element = h("div", { class: "state loading", role: "status", hidden: true },
    h("p", {}, `${what} … `, passed), h("progress", { "aria-label": what }));
  const began = performance.now();
  const tick = setInterval(() => {
    const spent = performance.now() - began;
    if (!element.isConnected && spent > 5000) {
      clearInterval(tick);
      return;
    }
    element.hidden = spent < PATIENCE_MS;
    if (spent > 1000) passed.textContent = time(Math.round(spent / 100) * 1e11, 3);
  }, 100);
  return element;
}

/**
 * There is nothing to show: what that means, and what to do.
 * @param {string} title
 * @param {...(Node | string)} advice
 */
export function empty(title, ...advice) {
  return h("div", { class: "state empty" }, h("h2", {}, title), h("p", {}, ...advice));
}

/**
 * An error with its reason and what to do.
 * @param {unknown} error
 * @param {(() => void) | null} [retry]
 */
export function failed(error, retry = null) {
  const reason = error instanceof Error ? error.message : String(error);
  return h("div", { class: "state error", role: "alert" },
    h("h2", {}, heading(error)),
    h("p", {}, reason),
    advice(error) && h("p", {}, advice(error)),
    retry && h("button", { type: "button", onclick: retry }, "Try again"));
}

/**
 * Notes and warnings of an answer above it; null where there are none.
 * @param {{warnings: (import("./api.js").Warning | string)[], notes: string[]}} answer
 * @param {string} [about] what they are about
 */
export function notices({ warnings, notes }, about = "this profile") {
  if (!warnings.length && !notes.length) return null;
  const lines = [
    ...notes,
    ...warnings.map((one) => typeof one === "string" ? one
      : one.count > 1 ? `${one.detail} (${one.count.toLocaleString("en-US")} times)` : one.detail),
  ];
  return h("details", { class: "notices", open: lines.length === 1 },
    h("summary", {}, lines.length === 1 ? `1 remark about ${about}`
      : `${lines.length} remarks about ${about}`),
    h("ul", {}, ...lines.map((line) => h("li", {}, line))));
}

/** @param {unknown} error */
function heading(error) {
  if (!(error instanceof ProblemError)) return "The page failed";
  switch (error.status) {
    case 0: return "No answer";
    case 401: return "A token is needed";
    case 403: return "Not allowed here";
    case 404: return "Not found";
    case 422: return "The profile is damaged";
    case 429: return "The server is busy";
    case 503: case 504: return "It took too long, or a host cannot be reached";
    default: return error.status >= 500 ? "The server failed" : "This cannot be answered";
  }
}

/** @param {unknown} error */
function advice(error) {
  if (!(error instanceof ProblemError)) return "Load the page again; if it stays, report it to its makers.";
  switch (error.status) {
    case 0: return "Look whether peakline serve still runs, then try again.";
    case 401: return "Load the page again to enter it; whoever runs the server has it.";
    case 404: return "It may have been moved or deleted; the list of sessions has what there is.";
    case 422: return "Record it again, or try `peakline summary FILE` to see what can be read.";
    case 429: return "Other questions are being worked on; try again in a moment.";
    case 504: return "The server's --request-timeout bounds it.";
    default: return "";
  }
}
