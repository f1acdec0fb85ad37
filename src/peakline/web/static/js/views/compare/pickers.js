/** Which sessions are compared, two to ten, and which host of the first two. */

import { comparedOf, comparedParams } from "../../core/compared.js";
import { fill, h } from "../../core/dom.js";
import { elided } from "../../core/elided.js";
import { pickSession } from "../../core/session_picker.js";
import { CATEGORIES } from "../../core/colors.js";

/** @typedef {"first" | "second"} Side */

export const MOST = 10;
const TITLES = /** @type {const} */ ({ first: "Before", second: "After" });

export class Pickers {
  /** By session. @type {Map<string, string[]>} */
  #hosts = new Map();
  /** @type {Record<string, string>} */
  #params = {};
  root = "";

  /** @param {(changes: Record<string, string | null>) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.parts = { first: h("div", { class: "side" }), second: h("div", { class: "side" }) };
    const swap = h("button", { type: "button", class: "swap", title: "Swap before and after",
      "aria-label": "Swap before and after", onclick: () => this.#swap() }, "⇄");
    this.others = h("div", { class: "row-of others" });
    this.element = h("div", { class: "panel pickers" }, this.parts.first, swap, this.parts.second,
      this.others);
    this.#draw();
  }

  /** @param {string} session @param {string[]} hosts of which one is compared */
  setHosts(session, hosts) {
    this.#hosts.set(session, hosts);
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
    const names = comparedOf(this.#params), isReady = this.#params["first"] && this.#params["second"];
    fill(this.others, ...names.slice(2).map((name, place) => h("span", { class: "other" },
      swatch(place + 2), h("span", { class: "name" }, elided(name)),
      h("button", { type: "button", class: "plain", "aria-label": `Compare without ${name}`,
        onclick: () => this.onChange(comparedParams(names.filter((one) => one !== name))) }, "×"))),
    isReady && names.length < MOST && h("button", { type: "button", id: "add-session",
      onclick: () => pickSession("Compare with one more", { root: this.root, without: names,
        choose: (name) => this.onChange(comparedParams([...names, name])) }) }, "Add a session …"));
    this.others.hidden = !this.others.childElementCount;
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {Side} side */
  #session(side) {
    const chosen = this.#params[side] ?? "", title = TITLES[side];
    return h("button", { type: "button", id: `${side}-session`, class: "pick", title: chosen || null,
      "aria-label": `${title}: ${chosen || "choose a session"}`,
      onclick: () => pickSession(title, { root: this.root,
        choose: (name) => this.onChange({ [side]: name, [`${side}_host`]: null }) }) },
    swatch(side === "first" ? 0 : 1), h("strong", {}, title),
    h("span", { class: "grow name" }, chosen ? elided(chosen) : "choose a session"),
    h("span", { "aria-hidden": "true" }, "▾"));
  }

  /** @param {Side} side */
  #host(side) {
    const hosts = this.#hosts.get(this.#params[side] ?? "");
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

/** @param {number} place among what is compared */
export function swatch(place) {
  return h("span", { class: "swatch", "aria-hidden": "true",
    style: { background: `var(--${CATEGORIES[place] ?? "series-8"})` } });
}
