/** SQL over a profile: a query, the tables beside it, its rows as a table and as a chart. */

import { changed } from "../../core/address.js";
import { fill, h } from "../../core/dom.js";
import { failed, loading } from "../../core/states.js";
import { Editor } from "./editor.js";
import { examplesList } from "./examples.js";
import { historyPart, remember } from "./history.js";
import { ask } from "./query.js";
import { Results } from "./results.js";
import { tablesPart } from "./tables.js";

/** @param {import("../../shell/context.js").Context} context */
export function mount(context) {
  let requested = "";
  let shown = context.params;
  /** @type {AbortController | null} */
  let running = null;
  /** @type {Results | null} */
  let results = null;
  const editor = new Editor((query) => run(query, true), () => running?.abort());
  const output = h("div", { class: "stack" });
  const past = historyPart((query) => run(query, true));
  const beside = h("div", { class: "stack sql-beside" });
  const questions = h("details", { class: "panel questions" });
  const everyone = h("input", { type: "checkbox", id: "all-ranks", onchange: () => {
    change({ ranks: everyone.checked ? "all" : null }, true);
    void addTables();
    run(requested, false);
  } });
  const choice = h("div", { class: "row-of tight", hidden: true }, everyone,
    h("label", { for: "all-ranks" }, "All ranks: every table has the column rank"));
  editor.element.append(choice);
  context.document?.then(({ hosts }) => { choice.hidden = hosts.length < 2; }, () => undefined);
  context.main.append(h("h1", { class: "unseen" }, "SQL"),
    h("div", { class: "sql-parts" },
      h("div", { class: "stack" }, editor.element, output, questions), beside));
  context.signal.addEventListener("abort", leave);
  void addTables();
  update(context.params);
  questions.open = !requested;
  if (!requested) editor.focus();
  return {
    update, destroy: leave,
    help: /** @type {[string, string][]} */ ([["Ctrl Enter", "runs the query"]]),
  };

  /** @param {Record<string, string>} params */
  function update(params) {
    const isOther = params["ranks"] !== shown["ranks"];
    shown = params;
    everyone.checked = shown["ranks"] === "all";
    const query = params["query"] ?? "";
    if (isOther) void addTables();
    if (query !== requested || isOther) {
      if (query) run(query, false);
      else {
        leave();
        requested = "";
        editor.setText("");
        fill(output);
      }
    } else results?.update(params);
  }

  /**
   * @param {string} query
   * @param {boolean} isReader whether the reader asks, instead of the address
   */
  function run(query, isReader) {
    if (!query.trim()) return;
    // The chart was of the other query's columns.
    if (isReader && query !== requested) {
      change({ query, chart: null, x: null, y: null, sort: null }, true);
    }
    requested = query;
    editor.setText(query);
    leave();
    running = new AbortController();
    void answer(query, running);
  }

  /**
   * @param {string} query
   * @param {AbortController} ends
   */
  async function answer(query, ends) {
    fill(output, loading("Running the query"));
    editor.setRunning(true);
    try {
      const host = hostOf();
      const result = await ask(context, host, query, ends.signal);
      if (ends.signal.aborted) return;
      results = new Results(context, query, result,
        { host, sort: shown["sort"] ?? "", change });
      fill(output, results.element);
      results.update(shown);
      remember(query, result.total);
      past.refresh();
    } catch (error) {
      if (context.signal.aborted || running !== ends) return;
      if (ends.signal.aborted) fill(output, h("p", { class: "quiet" }, "Stopped."));
      else fill(output, failed(error), editor.place(error));
    } finally {
      if (running === ends) {
        running = null;
        editor.setRunning(false);
      }
    }
  }

  /** @type {(changes: Record<string, string | null>, push?: boolean) => void} */
  function change(changes, push = false) {
    shown = changed(shown, changes);
    context.change(changes, push);
  }

  /** That of the query: none is all ranks. */
  function hostOf() {
    return shown["ranks"] === "all" ? "" : context.host;
  }

  function leave() {
    running?.abort();
    running = null;
    editor.setRunning(false);
    results?.destroy();
    results = null;
  }

  async function addTables() {
    fill(beside, loading("Reading the tables"));
    const host = hostOf();
    try {
      const { tables, element } = await tablesPart(context, host, {
        insert: (text) => editor.insert(text),
        look: (table) => run(`select * from ${table} limit 100`, true),
      });
      if (host !== hostOf()) return; // the reader chose other ranks meanwhile
      fill(beside, element, past.element);
      fill(questions, h("summary", {}, "Questions to begin with"),
        examplesList(tables, (query) => run(query, true)));
    } catch (error) {
      if (host === hostOf() && !context.signal.aborted) fill(beside, failed(error, () => void addTables()), past.element);
    }
  }
}
