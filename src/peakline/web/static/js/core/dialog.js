/** Dialogs: the browser's own, which keep the focus inside and close with Escape. */

import { h } from "./dom.js";

/**
 * Show `content` until it is closed; resolves then.
 * @param {string} title
 * @param {...(Node | string)} content
 * @returns {{element: HTMLDialogElement, closed: Promise<string>, close: (value?: string) => void}}
 */
export function openDialog(title, ...content) {
  const close = h("button", { type: "button", class: "plain close", "aria-label": "Close" }, "×");
  const heading = h("h2", { id: `dialog-${++opened}` }, title);
  const element = h("dialog", { "aria-labelledby": heading.id },
    h("div", { class: "dialog-head" }, heading, close), ...content);
  close.addEventListener("click", () => element.close());
  document.body.append(element);
  const closed = new Promise((/** @type {(value: string) => void} */ resolve) => {
    element.addEventListener("close", () => {
      element.remove();
      resolve(element.returnValue);
    });
  });
  element.showModal();
  return { element, closed, close: (value) => element.close(value) };
}

let opened = 0;

/**
 * Ask for the server's token.
 * @returns {Promise<string | null>} null when the reader gave none
 */
export async function askForToken() {
  const field = h("input", {
    type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false",
  });
  const form = h("form", { method: "dialog", class: "stack" },
    h("label", { for: "token" }, "This server answers only those who have its token."),
    field, h("button", { type: "submit", value: "given" }, "Go on"));
  const { closed } = openDialog("Token", form);
  field.focus();
  return (await closed) === "given" && field.value ? field.value.trim() : null;
}
