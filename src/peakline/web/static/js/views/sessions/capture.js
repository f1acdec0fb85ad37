/** Profiling running jobs from the page: whom, how long, how. */

import { openDialog } from "../../core/dialog.js";
import { fill, h } from "../../core/dom.js";
import { Recording } from "./recording.js";

/** @typedef {import("../../core/server.js").ServerDocument} ServerDocument */
/**
 * @typedef {object} Place where the session goes
 * @property {(name: string, view: string) => string} link
 * @property {() => void} onStored
 * @property {AbortSignal} signal
 */
/**
 * @typedef {object} Asked the body of `POST /api/captures`
 * @property {string[]} hosts
 * @property {number} duration_ms
 * @property {string} session_id
 * @property {Record<string, string | number | boolean>} options
 */

const LAST = "peakline.capture";
const DEFAULT_SECONDS = "2";

/** @type {readonly {name: string, title: string, values: readonly [string, string][]}[]} */
const LEVELS = [
  { name: "host_tracer_level", title: "Host tracer", values: [["", "default"], ["0", "0, off"],
    ["1", "1, what the program marks"], ["2", "2, and what takes long"], ["3", "3, everything"]] },
  { name: "python_tracer_level", title: "Python tracer", values: [["", "default"], ["0", "0, off"],
    ["1", "1, every call (slow)"]] },
  { name: "device_tracer_level", title: "Device tracer", values: [["", "default"], ["0", "0, off"],
    ["1", "1, on"]] },
  { name: "enable_hlo_proto", title: "Programs (HLO)", values: [["", "default"], ["true", "with"],
    ["false", "without"]] },
];

/**
 * @param {ServerDocument} server
 * @param {string} root
 * @param {Place} place
 */
export function openCapture(server, root, place) {
  const last = remembered();
  const hosts = h("textarea", { id: "hosts", rows: 3, required: true, spellcheck: "false",
    class: "wide mono", "aria-describedby": "hosts-help hosts-ports", placeholder: "localhost" });
  hosts.value = last.hosts || server.workers.join("\n") || "localhost";
  const ports = h("p", { id: "hosts-ports", class: "warn", role: "status" });
  const seconds = h("input", { type: "number", id: "seconds", min: 0.001, step: "any", required: true,
    max: server.max_capture_s, value: last.seconds || DEFAULT_SECONDS });
  const name = h("input", { type: "text", id: "session-name", autocomplete: "off", class: "wide",
    spellcheck: "false", placeholder: "made from the time" });
  const levels = LEVELS.map(({ name: option, title, values }) => {
    const select = h("select", { id: option }, ...values.map(([value, text]) =>
      h("option", { value }, text)));
    return { option, select, element: h("div", { class: "stack tight" },
      h("label", { for: option }, title), select) };
  });
  const others = h("textarea", { id: "others", rows: 2, class: "wide mono", spellcheck: "false",
    placeholder: "tpu_trace_mode=TRACE_COMPUTE" });
  const outcome = h("div", {});
  const form = h("form", { class: "stack capture" },
    h("label", { for: "hosts" }, "Hosts, one a line"), hosts,
    h("p", { id: "hosts-help", class: "quiet" }, helpOf(server)), ports,
    h("label", { for: "seconds" }, "Seconds to record"), seconds,
    h("label", { for: "session-name" }, "Session name"), name,
    h("details", {}, h("summary", {}, "Options"),
      h("div", { class: "columns levels" }, ...levels.map(({ element }) => element)),
      h("label", { for: "others" }, "Others, NAME=VALUE a line"), others),
    outcome, h("div", { class: "row-of" }, h("button", { type: "submit", class: "primary" }, "Record")));
  const checkPorts = () => void (ports.textContent = portsRemark(hostsOf(hosts.value), server));
  hosts.addEventListener("input", checkPorts);
  checkPorts();
  const dialog = openDialog("Capture", form);
  hosts.focus();
  const ends = new AbortController();
  place.signal.addEventListener("abort", () => dialog.close(), { signal: ends.signal });

  /** @type {Recording | null} */
  let recording = null;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    /** @type {Asked} */
    const requested = {
      hosts: hostsOf(hosts.value), duration_ms: Math.max(1, Math.round(Number(seconds.value) * 1000)),
      session_id: name.value.trim(), options: optionsOf(others.value),
    };
    for (const { option, select } of levels) {
      if (select.value) requested.options[option] = select.value;
    }
    localStorage.setItem(LAST, JSON.stringify({ hosts: hosts.value, seconds: seconds.value }));
    fill(outcome);
    form.hidden = true;
    recording = new Recording(requested, server, root, place, () => {
      recording?.element.remove();
      recording = null;
      form.hidden = false;
      hosts.focus();
    });
    dialog.element.append(recording.element);
    void recording.run();
  });
  dialog.element.addEventListener("cancel", (event) => {
    // Escape must not lose a recording by accident: Cancel ends it.
    if (recording?.isRunning) event.preventDefault();
  });
  void dialog.closed.then(() => {
    ends.abort();
    recording?.cancel();
  });
}

/** @param {ServerDocument} server */
function helpOf({ profiler_port: port, workers }) {
  const requested = `Each host's profiler is reached at port ${port} (--profiler-port); the job starts it `
    + `with jax.profiler.start_server(${port}) or tf.profiler.experimental.server.start(${port}).`;
  return workers.length ? `${requested} Known by name: ${workers.join(", ")}.` : requested;
}

/**
 * The service ignores ports, as its protocol says: whoever gives one should know.
 * @param {string[]} hosts
 * @param {ServerDocument} server
 */
function portsRemark(hosts, { profiler_port, workers }) {
  for (const host of hosts) {
    const port = /^(?:[^:]+|\[.*\]):(\d+)$/.exec(host)?.[1];
    if (port && Number(port) !== profiler_port && !workers.includes(host)) {
      return `Port ${port} of ${host} is ignored: ${profiler_port} is used. Start the server with `
        + `--profiler-port ${port}, or --worker NAME=${host}.`;
    }
  }
  return "";
}

/** @param {string} text */
function hostsOf(text) {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/**
 * @param {string} text
 * @returns {Record<string, string>}
 */
function optionsOf(text) {
  return Object.fromEntries(text.split("\n").map((line) => line.trim()).filter(Boolean)
    .map((line) => {
      const place = line.indexOf("=");
      return place < 0 ? [line, ""] : [line.slice(0, place).trim(), line.slice(place + 1).trim()];
    }));
}

/** @returns {{hosts?: string, seconds?: string}} */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(LAST) ?? "{}");
  } catch {
    return {};
  }
}
