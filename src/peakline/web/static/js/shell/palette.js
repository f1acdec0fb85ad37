/** Ctrl-K: go to anything by its name, from anywhere, without a mouse. */

import { openDialog } from "../core/dialog.js";
import { elided } from "../core/elided.js";
import { fill, h } from "../core/dom.js";
import { isAbort } from "../core/api.js";
import { forgetAnswers, SOURCES } from "./places.js";

const PAUSE_MS = 150;

/** @typedef {import("./places.js").Place} Place */

/**
 * Open it, unless a dialog is open.
 * @param {import("../core/address.js").Address} address
 * @param {import("./router.js").SessionDocument | null} session
 */
export function openPalette(address, session) {
  if (document.querySelector("dialog[open]")) return;
  const list = h("div", { class: "places", role: "listbox", id: "places", "aria-label": "Places" });
  const field = h("input", { type: "text", role: "combobox", class: "wide", spellcheck: "false",
    autocomplete: "off", "aria-expanded": "true", "aria-controls": "places", "aria-autocomplete": "list",
    "aria-label": "Go to", placeholder: session
      ? "An op, a buffer, a step, a finding, a view, a session" : "A session" });
  const state = h("p", { class: "quiet note", role: "status" });
  const { element, closed, close } = openDialog("Go to", field, list, state);
  element.classList.add("palette");
  let ends = new AbortController(), active = 0;
  /** @type {Place[][]} */
  let result = SOURCES.map(() => []);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  void closed.then(() => {
    clearTimeout(timer);
    ends.abort();
    forgetAnswers();
  });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  field.addEventListener("keydown", key);
  field.focus();
  search();

  function search() {
    ends.abort();
    ends = new AbortController();
    const { signal } = ends, text = field.value.trim();
    let coming = SOURCES.length;
    result = SOURCES.map(() => []);
    active = 0;
    draw(coming);
    SOURCES.forEach(async (source, at) => {
      try {
        result[at] = await source({ address, session, signal }, text);
      } catch (error) {
        if (isAbort(error)) return;
      }
      if (signal.aborted) return;
      coming -= 1;
      draw(coming);
    });
  }

  /** @param {number} coming */
  function draw(coming) {
    const all = result.flat();
    active = Math.min(active, Math.max(all.length - 1, 0));
    fill(list, ...all.map((one, at) => h("a", { href: one.href, role: "option", id: `place-${at}`,
      tabindex: -1, "aria-selected": String(at === active), class: at === active ? "active" : null,
      onclick: () => close() },
    h("span", { class: "quiet group" }, one.group), h("span", { class: "grow name" }, elided(one.text)),
    h("span", { class: "quiet note" }, one.note))));
    const shown = list.children[active];
    if (shown) {
      field.setAttribute("aria-activedescendant", shown.id);
      shown.scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
    state.textContent = coming ? "Searching …" : all.length ? "" : "Nothing has that in its name.";
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    const many = list.children.length;
    if (event.key === "Enter") {
      const chosen = list.children[active];
      if (chosen instanceof HTMLElement) chosen.click();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      active = many ? (active + (event.key === "ArrowDown" ? 1 : many - 1)) % many : 0;
      draw(state.textContent === "Searching …" ? 1 : 0);
    } else return;
    event.preventDefault();
  }
}
