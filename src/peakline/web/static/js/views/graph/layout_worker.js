/** Lays out pictures beside the page, so that it stays quick meanwhile. */

import { layOut } from "./nested.js";

addEventListener("message", ({ data: { number, boxes, links } }) => {
  try {
    postMessage({ number, layout: layOut(boxes, links) });
  } catch (error) {
    postMessage({ number, error: error instanceof Error ? error.message : String(error) });
  }
});
