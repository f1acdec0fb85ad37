/** Choosing a session of many by its name: the service searches, a few are shown. */

import { isAbort, sessionPage } from "./api.js";
import { openDialog } from "./dialog.js";
import { fill, h } from "./dom.js";
import { bytes, counted, date } from "./format.js";

const SHOWN = 30;
const PAUSE_MS = 150;

/**
 * Open it; `choose` gets the name of the chosen session, and the dialog closes.
 * @param {string} title
 * @param {{root: string, without?: string[], choose: (name: string) => void}} options
 */
export function pickSession(title, { root, without = [], choose }) {
  const list = h("div", { class: "places", role: "listbox", id: "picked", "aria-label": "Sessions" });
  const field = h("input", { type: "text", role: "combobox", class: "wide", spellcheck: "false",
    autocomplete: "off", "aria-expanded": "true", "aria-controls": "picked",
    "aria-autocomplete": "list", "aria-label": "Search sessions", placeholder: "Search name or host" });
  const state = h("p", { class: "quiet note", role: "status" });
  const { element, closed, close } = openDialog(title, field, list, state);
  element.classList.add("palette");
  let ends = new AbortController(), active = 0;
  /** @type {string[]} */
  let names = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  void closed.then(() => {
    clearTimeout(timer);
    ends.abort();
  });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void search(), PAUSE_MS);
  });
  field.addEventListener("keydown", key);
  field.focus();
  void search();

  async function search() {
    ends.abort();
    ends = new AbortController();
    state.textContent = "Searching …";
    try {
      const { sessions, matching, all } = await sessionPage(
        { root, search: field.value.trim(), limit: SHOWN + without.length, tools: false },
        ends.signal);
      const shown = sessions.filter(({ session_id: name }) => !without.includes(name)).slice(0, SHOWN);
      names = shown.map(({ session_id: name }) => name);
      fill(list, ...shown.map((one, at) => h("div", { role: "option", id: `picked-${at}`,
        onclick: () => take(at) },
      h("span", { class: "grow name" }, one.session_id),
      h("span", { class: "quiet note" }, [one.modified ? date(one.modified) : "",
        one.bytes ? bytes(one.bytes) : ""].filter(Boolean).join(" · ")))));
      state.textContent = !shown.length ? "No session matches."
        : matching > sessions.length ? `the first ${shown.length} of ${counted(matching, "session")}`
          : `${shown.length} of ${counted(all, "session")}`;
      mark(0);
    } catch (error) {
      if (isAbort(error)) return;
      state.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {number} place */
  function mark(place) {
    active = place;
    [...list.children].forEach((one, at) => {
      one.classList.toggle("active", at === active);
      one.ariaSelected = String(at === active);
    });
    const shown = list.children[active];
    if (shown) {
      field.setAttribute("aria-activedescendant", shown.id);
      shown.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  }

  /** @param {number} place */
  function take(place) {
    const name = names[place];
    if (name === undefined) return;
    close();
    choose(name);
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    const many = names.length;
    if (event.key === "Enter") take(active);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (many) mark((active + (event.key === "ArrowDown" ? 1 : many - 1)) % many);
    } else return;
    event.preventDefault();
  }
}
