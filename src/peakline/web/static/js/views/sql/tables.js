/** The tables and the views that a query may name, with their columns. */

import { json } from "../../core/api.js";
import { fill, h } from "../../core/dom.js";

/**
 * @typedef {{name: string, doc: string, columns: {name: string, type: string, unit: string, doc: string}[]}} Table
 * @typedef {Table & {units: string, tables: string[]}} View
 */

/**
 * @param {import("../../shell/context.js").Context} context
 * @param {string} host as `asking`
 * @param {{insert: (text: string) => void, look: (table: string) => void}} actions
 * @returns {Promise<{tables: Table[], element: HTMLElement}>}
 */
export async function tablesPart(context, host, { insert, look }) {
  const [all, every, own] = await Promise.all([
    json("tables", { signal: context.signal }), json("views", { signal: context.signal }),
    context.resource(["tables"], { host }),
  ]);
  const there = new Set(own.data);
  /** @type {Table[]} */
  const tables = all.data.filter((/** @type {Table} */ table) => there.has(table.name));
  /** @type {View[]} */
  const views = every.data.filter((/** @type {View} */ view) => view.tables
    .every((name) => there.has(name)));
  const list = h("div", { class: "table-list" });
  const viewList = h("div", { class: "view-list" });
  const field = h("input", { type: "search", id: "table-search", spellcheck: "false",
    placeholder: "table or column" });
  field.addEventListener("input", draw);
  draw();
  return {
    tables,
    element: h("section", { class: "panel stack" }, h("h2", { class: "flat" }, "Tables"),
      h("label", { for: "table-search", class: "unseen" }, "Find a table or column"), field, list,
      h("h2", { class: "flat" }, "Views"), viewList),
  };

  function draw() {
    const text = field.value.trim().toLowerCase();
    show(list, tables, text, "no table or column of that name");
    show(viewList, views, text, "no view or column of that name");
  }

  /**
   * @param {HTMLElement} place
   * @param {Table[]} among
   * @param {string} text
   * @param {string} none
   */
  function show(place, among, text, none) {
    const result = among.filter((table) => !text || table.name.includes(text)
      || table.columns.some((column) => column.name.includes(text)));
    fill(place, ...result.map((table) => tablePart(table, text)),
      !result.length && h("p", { class: "quiet" }, none));
  }

  /**
   * @param {Table} table
   * @param {string} text
   */
  function tablePart({ name, doc, columns }, text) {
    const isOpen = text.length > 1 && !name.includes(text);
    const body = h("div", {});
    const part = h("details", { open: isOpen }, h("summary", { class: "mono", title: doc }, name),
      body);
    const open = () => part.open && !body.childElementCount && fill(body,
      h("p", { class: "quiet note" }, doc),
      h("p", { class: "row-of tight" },
        h("button", { type: "button", onclick: () => look(name) }, "Look at it"),
        h("button", { type: "button", onclick: () => insert(name) }, "Insert the name")),
      h("ul", { class: "plain-list" }, ...columns.map((column) => h("li", {},
        h("button", { type: "button", class: "plain column mono", title: column.doc,
          onclick: () => insert(column.name) }, column.name),
        h("span", { class: "quiet note" },
          `${column.type}${column.unit ? `, ${column.unit}` : ""}`)))));
    part.addEventListener("toggle", open);
    open();
    return part;
  }
}
