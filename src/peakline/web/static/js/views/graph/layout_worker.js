/** Lays out pictures beside the page, so that it stays quick meanwhile. */

import { layOut } from "./nested.js";

// Whoever started this may end it from now on.
postMessage({ number: 0 });

addEventListener("message", ({ data: { number, boxes, links } }) => {
  try {
    postMessage({ number, layout: layOut(boxes, links) });
  } catch (error) {
    postMessage({ number, error: error instanceof Error ? error.message : String(error) });
  }
});
