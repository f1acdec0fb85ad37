/** Charts by Plotly, loaded when the first one is drawn. */

import { h } from "./dom.js";
import { palette } from "./theme.js";
import { scriptUrl } from "./trusted.js";


/** @type {Promise<any> | null} */
let coming = null;
/** @type {WeakMap<HTMLElement, Promise<any>>} what each element's chart is busy with */
const drawing = new WeakMap();

/** @returns {Promise<any>} Plotly */
export function loadPlotly() {
  coming ??= new Promise((resolve, reject) => {
    const script = h("script");
    script.src = scriptUrl("plotly");
    script.addEventListener("load", () => resolve(/** @type {any} */ (window)["Plotly"]));
    script.addEventListener("error", () => {
      coming = null;
      reject(new Error("the charts' script cannot be loaded; is the server still running?"));
    });
    document.head.append(script);
  });
  return coming;
}

/**
 * Draw traces into an element, in the page's colors; drawing again changes what is there.
 *
 * Texts must be escaped with `plain`: Plotly reads some markup in names.
 * @param {HTMLElement} element
 * @param {any[]} traces
 * @param {any} [layout]
 * @returns {Promise<any>} the element as Plotly's, with `.on(event, ...)`
 */
export async function drawPlot(element, traces, layout = {}) {
  const Plotly = await loadPlotly();
  const colors = palette();
  const axis = { gridcolor: colors["line"], linecolor: colors["line"], zerolinecolor: colors["line"],
    automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = layout;
  const drawn = Plotly.react(element, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colors["text"], size: 12, family: "system-ui, sans-serif" },
    colorway: [1, 2, 3, 4, 5, 6, 7, 8].map((place) => colors[`series-${place}`]),
    margin: { l: 60, r: 16, t: 16, b: 40 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colors["quiet"], activecolor: colors["accent"] },
    hoverlabel: { align: "left", bgcolor: colors["raised"], font: { color: colors["text"] } },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis },
    ...rest,
  // Plotly would offer to upload the chart to its makers: nothing leaves this server.
  }, { responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false,
       modeBarButtonsToRemove: ["lasso2d", "select2d"] });
  drawing.set(element, drawn);
  return drawn;
}

/**
 * Forget a chart before its element goes.
 * @param {HTMLElement} element
 */
export async function dropPlot(element) {
  if (!coming) return;
  const Plotly = await coming;
  // One that is taken from under Plotly while it draws is an error of Plotly's.
  await drawing.get(element)?.catch(() => undefined);
  Plotly.purge(element);
}

/**
 * A foreign text as Plotly shows it: `<` and `&` mean themselves, and `%{` is no template.
 * @param {string} text
 */
export function plain(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
    .replace(/%\{/g, "&#37;{");
}
