/** Where a query is written: a text field that Tab leaves, and Ctrl Enter runs. */

import { h } from "../../core/dom.js";
import { ProblemError } from "../../core/api.js";

const PLACES = [
  /syntax error at or near "(.+)"$/, /column "([^"]+)" not found/i, /Table with name ([^ !]+)/,
  /Function with name ([^ !]+)/i, /"([^"]+)"/,
];

export class Editor {
  /**
   * @param {(query: string) => void} run
   * @param {() => void} stop
   */
  constructor(run, stop) {
    this.field = h("textarea", {
      id: "query", rows: 8, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      class: "mono", "aria-describedby": "query-keys",
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      run(this.field.value);
    });
    this.go = h("button", { type: "button", class: "primary", onclick: () => run(this.field.value) },
      "Run");
    this.stop = h("button", { type: "button", hidden: true, onclick: stop }, "Stop");
    this.element = h("section", { class: "panel stack" },
      h("label", { for: "query" }, "Query"), this.field,
      h("div", { class: "row-of" }, this.go, this.stop,
        h("span", { class: "quiet", id: "query-keys" },
          "Ctrl Enter runs it. DuckDB's dialect, reading only; times are picoseconds, sizes bytes.")));
  }

  focus() {
    this.field.focus({ preventScroll: true });
  }

  /** @param {string} query */
  setText(query) {
    if (this.field.value !== query) this.field.value = query;
    const lines = query.split("\n").length;
    this.field.rows = Math.min(Math.max(lines + 1, 8), 24);
  }

  /** @param {boolean} isRunning */
  setRunning(isRunning) {
    this.stop.hidden = !isRunning;
  }

  /**
   * Put a name where the cursor is.
   * @param {string} text
   */
  insert(text) {
    const { selectionStart: start, selectionEnd: end, value } = this.field;
    const before = value.slice(0, start);
    const space = before && !/[\s(.,]$/.test(before) ? " " : "";
    this.field.setRangeText(space + text, start, end, "end");
    this.focus();
  }

  /**
   * Where in the query an error is, as far as its words tell; null where they do not.
   * @param {unknown} error
   */
  place(error) {
    if (!(error instanceof ProblemError)) return null;
    const text = this.field.value, reason = error.message;
    let word = "", at = -1;
    if (/at end of input/.test(reason)) at = text.trimEnd().length;
    for (const pattern of PLACES) {
      if (at >= 0) break;
      word = pattern.exec(reason)?.[1] ?? "";
      if (word) at = find(text, word);
    }
    if (at < 0) return null;
    const lines = text.slice(0, at).split("\n");
    const show = () => {
      this.field.focus();
      this.field.setSelectionRange(at, at + word.length);
    };
    return h("p", { class: "row-of centered" },
      `Line ${lines.length}, column ${(lines[lines.length - 1]?.length ?? 0) + 1}.`,
      h("button", { type: "button", onclick: show }, "Show the place"));
  }
}

/**
 * The place of a word of its own, in any case, -1 where it is not.
 * @param {string} text
 * @param {string} word
 */
function find(text, word) {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const edge = (/** @type {string | undefined} */ letter) => (/\w/.test(letter ?? "") ? "\\b" : "");
  const pattern = `${edge(word[0])}${escaped}${edge(word[word.length - 1])}`;
  return text.search(new RegExp(pattern, "i"));
}
