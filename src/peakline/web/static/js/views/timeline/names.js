/** The names of events by code; what the first answer does not hold is asked for when needed. */

import { isAbort } from "../../core/api.js";
import { askTimeline } from "./ask.js";
import { colorOf } from "./colors.js";

const UNKNOWN_COLORS = 32;

export class Names {
  /** @type {(string | undefined)[]} */
  #names = [];
  #asking = false;
  /** @type {(code: number) => boolean} */
  #isFound = () => true;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {Record<string, any>} lanes
   * @param {() => void} changed more names are there
   */
  constructor(context, lanes, changed) {
    this.context = context;
    this.changed = changed;
    this.total = Number(lanes["names_total"]);
    /** The color of each code. */
    this.color = new Uint8Array(this.total);
    /** 1 for the codes of names that the search did not find. */
    this.dim = new Uint8Array(this.total);
    for (let code = 0; code < this.total; code++) this.color[code] = code % UNKNOWN_COLORS;
    // Of several hosts, each has its own.
    const parts = lanes["names_parts"] ?? [{ from: Number(lanes["names_from"]), names: lanes["names"] }];
    for (const { from, names } of parts) this.#take(from, names);
  }

  /**
   * A name, or "…" until it has come.
   * @param {number} code
   */
  get(code) {
    const name = this.#names[code];
    if (name === undefined) void this.#ask(code);
    return name ?? "…";
  }

  /** Have all these names. @param {ArrayLike<number>} codes */
  async all(codes) {
    for (const code of new Set(Array.from(codes))) {
      if (code < 0 || this.isKnown(code)) continue;
      this.#take(code, (await askTimeline(this.context, { view: "lanes", names_from: code }))["names"]);
    }
  }

  /** @param {number} code */
  isKnown(code) {
    return this.#names[code] !== undefined;
  }

  /**
   * Dim all names but those that `isFound` says are found; null dims none.
   * @param {((code: number, name: string | undefined) => boolean) | null} isFound
   */
  highlight(isFound) {
    this.#isFound = (code) => !isFound || isFound(code, this.#names[code]);
    for (let code = 0; code < this.total; code++) this.dim[code] = this.#isFound(code) ? 0 : 1;
  }

  /** @param {number} code */
  async #ask(code) {
    if (this.#asking) return;
    this.#asking = true;
    try {
      const columns = await askTimeline(this.context, { view: "lanes", names_from: code });
      this.#take(code, columns["names"]);
      this.changed();
    } catch (error) {
      // What is drawn next asks again; without names the picture still stands.
      if (!isAbort(error)) console.warn("names of events did not come");
    } finally {
      this.#asking = false;
    }
  }

  /**
   * @param {number} from
   * @param {string[]} names
   */
  #take(from, names) {
    names.forEach((name, place) => {
      const code = from + place;
      this.#names[code] = name;
      this.color[code] = colorOf(name);
      this.dim[code] = this.#isFound(code) ? 0 : 1;
    });
  }
}
