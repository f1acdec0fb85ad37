/** Light and dark: what the system says, unless the reader chose. Colors of canvases and charts. */

const KEY = "peakline.theme";
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {Map<string, Record<string, string>>} the colors of each theme: charts ask in every frame */
const known = new Map();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Apply the reader's choice; call once at start. */
export function startTheme() {
  apply(localStorage.getItem(KEY));
  dark.addEventListener("change", notify);
}

/** @returns {"light" | "dark"} what is shown */
export function theme() {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return dark.matches ? "dark" : "light";
}

export function switchTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, next);
  apply(next);
  notify();
}

/**
 * Be told when the colors change; returns what ends that.
 * @param {() => void} listener
 */
export function onTheme(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * The stylesheet's colors by name, for canvases: `palette()["accent"]` is `--accent`.
 * @returns {Record<string, string>}
 */
export function palette() {
  const shown = theme(), result = known.get(shown);
  if (result) return result;
  const style = getComputedStyle(document.documentElement);
  /** @type {Record<string, string>} */
  const colors = {};
  for (const name of NAMES) colors[name] = style.getPropertyValue(`--${name}`).trim();
  // Not while the stylesheet is still on its way.
  if (colors["panel"]) known.set(shown, colors);
  return colors;
}

const NAMES = [
  "ground", "panel", "raised", "line", "text", "quiet", "accent", "warn", "bad", "good", "focus",
  "band", "shade",
  "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
  "series-9", "series-10", "series-11", "series-12", "series-13",
];
/** How many series colors there are. */
export const SERIES = 8;

/** @param {string | null} choice */
function apply(choice) {
  if (choice === "light" || choice === "dark") document.documentElement.dataset["theme"] = choice;
  else delete document.documentElement.dataset["theme"];
}

function notify() {
  for (const listener of listeners) listener();
}
