/** Links and texts to be pasted elsewhere, for a colleague. */

import { openDialog } from "./dialog.js";
import { announce, h } from "./dom.js";
import { failed } from "./states.js";

const REPORTED_MS = 1600;

/**
 * A button that copies an address of this page.
 * @param {string} title
 * @param {() => string} hash of the address, `#/...`
 */
export function copyButton(title, hash) {
  const { origin, pathname } = location;
  return copyText(title, async () => `${origin}${pathname}${hash()}`);
}

/**
 * A button that copies a text.
 * @param {string} title
 * @param {() => Promise<string>} text
 */
export function copyText(title, text) {
  const button = h("button", { type: "button", onclick: async () => {
    button.disabled = true;
    try {
      const copied = await text();
      await navigator.clipboard.writeText(copied).then(() => {
        button.textContent = "Copied";
        announce("copied");
      }, () => showText(title, copied));
    } catch (error) {
      openDialog(title, failed(error));
    }
    button.disabled = false;
    setTimeout(() => void (button.textContent = title), REPORTED_MS);
  } }, title);
  return button;
}

/**
 * Browsers let pages copy only over HTTPS and from this machine: elsewhere the reader does it.
 * @param {string} title
 * @param {string} text
 */
function showText(title, text) {
  const field = h("textarea", { readonly: true, class: "wide mono", rows: text.includes("\n") ? 20 : 2,
    "aria-label": title });
  field.value = text;
  openDialog(title, h("p", {}, "Copy it from here:"), field);
  field.select();
}
