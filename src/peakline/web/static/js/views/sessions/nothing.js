/** What a log directory without sessions says: how to get the first one. */

import { h } from "../../core/dom.js";

const RECIPES = [
  { of: "JAX", lines: ["with jax.profiler.trace(LOGDIR):", "    train_step(state, batch)"] },
  { of: "TensorFlow", lines: ["tf.profiler.experimental.start(LOGDIR)", "train_step(batch)",
    "tf.profiler.experimental.stop()"] },
  { of: "PyTorch", lines: ["with torch.profiler.profile(profile_memory=True) as p:",
    "    train_step(batch)", "p.export_chrome_trace('trace.json')  # drop it here"] },
];

/**
 * @param {import("../../core/server.js").ServerDocument} server
 * @param {string} root
 * @param {{capture: () => void, upload: () => void}} open
 * @returns {HTMLElement}
 */
export function nothingYet({ roots, read_only, profiler_port }, root, { capture, upload }) {
  return h("div", { class: "panel stack nothing-yet" },
    h("h2", {}, "No sessions yet"),
    h("p", {}, "The log directory ", h("strong", {}, root || roots[0] || ""), " holds no profile. ",
      "One that appears in it is shown here: record one in your program, with LOGDIR the log "
      + "directory that this server was started with."),
    h("div", { class: "columns recipes" }, ...RECIPES.map(({ of, lines }) =>
      h("div", {}, h("h3", {}, of), h("pre", { tabindex: 0, "aria-label": `Recording with ${of}` },
        lines.join("\n"))))),
    read_only ? h("p", { class: "quiet" }, "This server is read-only: it takes no captures and uploads.")
      : h("div", { class: "columns" },
        h("div", {}, h("h3", {}, "From a job that runs"),
          h("p", {}, `A job that called jax.profiler.start_server(${profiler_port}) or `
            + `tf.profiler.experimental.server.start(${profiler_port}) can be profiled from here.`),
          h("button", { type: "button", class: "primary", onclick: capture }, "Capture …")),
        h("div", {}, h("h3", {}, "From a file"),
          h("p", {}, "Drop a file here: an XSpace (.xplane.pb), RunMetadata, a memory log, a pprof "
            + "heap, a PyTorch snapshot or trace, a graph."),
          h("button", { type: "button", onclick: upload }, "Upload …"))));
}
