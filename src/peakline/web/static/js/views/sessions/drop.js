/** A file that is dropped anywhere on the list is uploaded. */

import { h } from "../../core/dom.js";

/**
 * @param {HTMLElement} main
 * @param {AbortSignal} signal
 * @param {() => boolean} isWanted
 * @param {(files: File[]) => void} onFiles
 */
export function takeDrops(main, signal, isWanted, onFiles) {
  const sign = h("div", { class: "drop", hidden: true, "aria-hidden": "true" },
    h("p", {}, "Drop the file to upload it as a new session"));
  main.append(sign);
  const options = { signal };
  const brings = (/** @type {DragEvent} */ event) =>
    event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
  addEventListener("dragover", (event) => {
    if (!brings(event)) return;
    // Else the browser would leave the page and show the file.
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = isWanted() ? "copy" : "none";
    sign.hidden = !isWanted();
  }, options);
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) sign.hidden = true;
  }, options);
  addEventListener("drop", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    sign.hidden = true;
    const files = [...event.dataTransfer?.files ?? []];
    if (files.length && isWanted()) onFiles(files);
  }, options);
}
