/** The layout of what is visible, made in a worker: the latest one that was wanted. */

import { scriptUrl } from "../../core/trusted.js";

/** @typedef {import("./nested.js").Layout} Layout */

export class LayoutMaker {
  /** @type {Worker | null} */
  #worker = null;
  #isLoaded = false;
  #number = 0;
  /** @type {Map<number, {resolve: (layout: Layout | null) => void, reject: (error: Error) => void}>} */
  #waiting = new Map();

  /**
   * Where boxes and lines lie; null where another layout was wanted meanwhile.
   * @param {import("./nested.js").Box[]} boxes
   * @param {import("./nested.js").Link[]} links
   * @returns {Promise<Layout | null>}
   */
  make(boxes, links) {
    const worker = this.#started();
    const number = ++this.#number;
    for (const { resolve } of this.#waiting.values()) resolve(null);
    this.#waiting.clear();
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      worker.postMessage({ number, boxes, links });
    });
  }

  /** Load what makes layouts, before the first is wanted. */
  start() {
    this.#started();
  }

  destroy() {
    const worker = this.#worker;
    // While its modules are on their way, they would be left without an end.
    if (this.#isLoaded) worker?.terminate();
    else worker?.addEventListener("message", () => worker.terminate());
    this.#worker = null;
    for (const { resolve } of this.#waiting.values()) resolve(null);
    this.#waiting.clear();
  }

  #started() {
    if (this.#worker) return this.#worker;
    const worker = new Worker(scriptUrl("layout"), { type: "module" });
    this.#isLoaded = false;
    worker.addEventListener("message", ({ data: { number, layout, error } }) => {
      if (worker !== this.#worker) return;
      this.#isLoaded = true;
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      if (error) waiting?.reject(new Error(error));
      else waiting?.resolve(layout);
    });
    worker.addEventListener("error", () => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error("the layout of the graph failed; is the server still running?"));
      }
      this.#waiting.clear();
      worker.terminate();
      this.#worker = null;
    });
    this.#worker = worker;
    return worker;
  }
}
