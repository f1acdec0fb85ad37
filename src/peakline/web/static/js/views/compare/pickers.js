/** Which two sessions are compared, and which host of each. */

import { fill, h } from "../../core/dom.js";

/** @typedef {import("../../shell/router.js").SessionDocument} SessionDocument */
/** @typedef {"first" | "second"} Side */

const TITLES = /** @type {const} */ ({ first: "Before", second: "After" });

export class Pickers {
  /** @type {SessionDocument[]} */
  #sessions = [];
  /** @type {Record<string, string>} */
  #params = {};

  /** @param {(changes: Record<string, string | null>) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.parts = { first: h("div", { class: "side" }), second: h("div", { class: "side" }) };
    const swap = h("button", { type: "button", class: "swap", title: "Swap before and after",
      "aria-label": "Swap before and after", onclick: () => this.#swap() }, "⇄");
    this.element = h("div", { class: "panel pickers" }, this.parts.first, swap, this.parts.second);
    this.#draw();
  }

  /** @param {SessionDocument[]} sessions what can be chosen */
  setSessions(sessions) {
    this.#sessions = sessions;
    this.#draw();
  }

  /** @param {Record<string, string>} params of the address */
  setParams(params) {
    this.#params = params;
    this.#draw();
  }

  #draw() {
    const focused = this.element.contains(document.activeElement) ? document.activeElement?.id : "";
    for (const side of /** @type {const} */ (["first", "second"])) {
      fill(this.parts[side], this.#session(side), this.#host(side));
    }
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {Side} side */
  #session(side) {
    const chosen = this.#params[side] ?? "";
    const names = this.#sessions.map(({ session_id }) => session_id);
    // One that the list does not have yet, or no more, is still what is shown.
    if (chosen && !names.includes(chosen)) names.unshift(chosen);
    const select = h("select", { id: `${side}-session` },
      h("option", { value: "", selected: !chosen }, "choose a session"),
      ...names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
    select.addEventListener("change", () =>
      this.onChange({ [side]: select.value, [`${side}_host`]: null }));
    return [h("label", { for: select.id }, TITLES[side]), select];
  }

  /** @param {Side} side */
  #host(side) {
    const hosts = this.#sessions.find(({ session_id }) => session_id === this.#params[side])?.hosts;
    if (!hosts || hosts.length < 2) return null;
    const key = `${side}_host`, chosen = this.#params[key] ?? hosts[0];
    const select = h("select", { id: `${side}-host`, "aria-label": `Host of ${TITLES[side]}` },
      ...hosts.map((host) => h("option", { value: host, selected: host === chosen }, host)));
    select.addEventListener("change", () => this.onChange({ [key]: select.value }));
    return select;
  }

  #swap() {
    const { first = "", second = "", first_host = "", second_host = "" } = this.#params;
    this.onChange({ first: second, second: first, first_host: second_host, second_host: first_host });
  }
}
