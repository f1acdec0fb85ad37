/** Taking along what is shown: rows as CSV or JSON, a picture as PNG or SVG, the command for it. */

import { copyText } from "./copy.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { failed } from "./states.js";
import { palette } from "./theme.js";

/** The browser has begun to save a file by then. */
const SAVED_MS = 10_000;
/** What a picture looks like by, whose stylesheet stays here. */
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];

/**
 * @typedef {object} Rows
 * @property {string[]} columns as the service calls them, with their units
 * @property {unknown[][]} rows
 */
/**
 * @typedef {object} Exported what there is of one thing that is shown
 * @property {string} name of the files, without their ending
 * @property {string} [title] of the menu, where several are beside each other
 * @property {() => Rows | Promise<Rows>} [rows] CSV and, where `json` is not, JSON
 * @property {() => unknown | Promise<unknown>} [json] the service's own answer
 * @property {() => HTMLCanvasElement | SVGSVGElement | null} [picture] PNG; of SVG also SVG
 * @property {() => string | Promise<string>} [command] the `peakline` command that gives the same
 */

/**
 * A menu of what can be taken along.
 * @param {Exported} exported
 * @returns {HTMLDetailsElement}
 */
export function exportMenu(exported) {
  const { rows, json, picture, command } = exported;
  const menu = h("div", {});
  const details = h("details", { class: "export" },
    h("summary", { "aria-label": `Export ${exported.name.replace(/[_-]+/g, " ")}` },
      exported.title ?? "Export"), menu);
  /** @param {string} title @param {() => Promise<void>} save */
  const add = (title, save) => {
    const button = h("button", { type: "button", onclick: async () => {
      details.open = false;
      try {
        await save();
      } catch (error) {
        openDialog(title, failed(error));
      }
    } }, title);
    menu.append(button);
    return button;
  };
  if (rows) add("CSV", async () => saveText(csvOf(await rows()), exported.name, "csv", "text/csv"));
  if (json ?? rows) {
    add("JSON", async () => {
      const value = json ? await json() : objectsOf(/** @type {Rows} */ (await rows?.()));
      saveText(`${JSON.stringify(value, null, 1)}\n`, exported.name, "json", "application/json");
    });
  }
  if (picture) {
    add("PNG", async () => save(await pngOf(present(picture())), `${fileName(exported.name)}.png`));
    const button = add("SVG", async () => saveText(
      svgText(/** @type {SVGSVGElement} */ (present(picture()))), exported.name, "svg", "image/svg+xml"));
    details.addEventListener("toggle", () =>
      void (button.hidden = !(picture() instanceof SVGSVGElement)));
  }
  if (command) menu.append(copyText("Copy the command", async () => command()));
  details.addEventListener("focusout", (event) => {
    const next = event.relatedTarget;
    if (next instanceof Node && !details.contains(next)) details.open = false;
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary")?.focus();
    event.stopPropagation();
  });
  return details;
}

/**
 * A table, and above it what is said of it and its menu.
 * @param {import("./table.js").DataTable} table
 * @param {Exported} exported its rows are those of the table, where nothing else is said
 * @param {...import("./dom.js").Child} head
 */
export function withExport(table, exported, ...head) {
  return h("div", { class: "stack" }, h("div", { class: "row-of" }, ...head,
    h("span", { class: "grow" }), exportMenu({ rows: () => rowsOf(table), ...exported })),
  table.element);
}

/**
 * The rows of a table as it is shown, by the keys of its columns.
 * @param {import("./table.js").DataTable} table
 * @returns {Rows}
 */
export function rowsOf(table) {
  const { columns } = table.options;
  return { columns: columns.map(({ key }) => key),
    rows: table.rows.map((row) => columns.map(({ key }) => row[key] ?? null)) };
}

/**
 * Objects that have the same keys, such as the rows of a query.
 * @param {Record<string, unknown>[]} result
 * @returns {Rows}
 */
export function rowsOfObjects(result) {
  const columns = Object.keys(result[0] ?? {});
  return { columns, rows: result.map((row) => columns.map((name) => row[name] ?? null)) };
}

/**
 * Rows by RFC 4180; a text that a spreadsheet would compute is marked as one.
 * @param {Rows} table
 */
export function csvOf({ columns, rows }) {
  const cell = (/** @type {unknown} */ value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/**
 * Let the browser save a file.
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), SAVED_MS);
}

/**
 * A name that every file system takes.
 * @param {string} name
 */
export function fileName(name) {
  return name.replace(/[^\w.-]+/g, "_").slice(0, 120) || "peakline";
}

/** @param {Rows} table */
function objectsOf({ columns, rows }) {
  return rows.map((row) => Object.fromEntries(columns.map((key, place) => [key, row[place] ?? null])));
}

/** @param {string} text @param {string} name @param {string} ending @param {string} type */
function saveText(text, name, ending, type) {
  save(new Blob([text], { type }), `${fileName(name)}.${ending}`);
}

/**
 * @template T
 * @param {T | null} picture
 * @returns {T}
 */
function present(picture) {
  if (!picture) throw new Error("nothing is drawn yet");
  return picture;
}

/**
 * A picture on the ground of its panel, as sharp as it is on the screen.
 * @param {HTMLCanvasElement | SVGSVGElement} picture
 * @returns {Promise<Blob>}
 */
async function pngOf(picture) {
  const isCanvas = picture instanceof HTMLCanvasElement;
  const [width, height] = sizeOf(picture);
  const scale = isCanvas ? 1 : devicePixelRatio;
  const canvas = h("canvas");
  canvas.width = isCanvas ? picture.width : Math.round(width * scale);
  canvas.height = isCanvas ? picture.height : Math.round(height * scale);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = palette()["panel"] ?? "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(isCanvas ? picture : await imageOf(picture), 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) =>
    (blob ? resolve(blob) : reject(new Error("the browser cannot make a picture of this size")))));
}

/** @param {SVGSVGElement} picture */
async function imageOf(picture) {
  const image = h("img", { src: `data:image/svg+xml,${encodeURIComponent(svgText(picture))}` });
  await image.decode();
  return image;
}

/**
 * Of one that is not in the page what it says itself.
 * @param {HTMLCanvasElement | SVGSVGElement} picture
 * @returns {[width: number, height: number]}
 */
function sizeOf(picture) {
  return picture.isConnected ? [picture.clientWidth, picture.clientHeight]
    : [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))];
}

/**
 * An SVG that needs no stylesheet.
 * @param {SVGSVGElement} picture
 */
function svgText(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const from = picture.isConnected ? [picture, ...picture.querySelectorAll("*")] : [];
  [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
    const own = from[place];
    const style = own && getComputedStyle(own);
    for (const name of style ? STYLES : []) element.setAttribute(name, style?.getPropertyValue(name) ?? "");
    for (const name of ["class", "style", "tabindex"]) element.removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [width, height] = sizeOf(picture);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}
