/** What keys there are. */

import { h } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";

/** @type {[string, string][]} */
const GENERAL = [
  ["?", "this help"],
  ["Ctrl K", "go to a view, step, op, buffer, finding or session by its name"],
  ["Tab, Shift Tab", "from part to part"],
  ["↑ ↓ Page Up Page Down Home End", "through a table that has the focus; Enter chooses a row"],
  ["Esc", "closes what is open"],
];

/** @param {[string, string][]} own the keys of the view that is shown */
export function openHelp(own) {
  if (document.querySelector("dialog[open]")) return;
  const keys = (/** @type {[string, string][]} */ list) => h("dl", { class: "keys" },
    ...list.flatMap(([key, meaning]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning)]));
  openDialog("Keys", ...(own.length ? [h("h3", {}, "Here"), keys(own)] : []),
    h("h3", {}, "Everywhere"), keys(GENERAL),
    h("p", {}, "Everything that is shown is in the address: copy it to show somebody the same."));
}
