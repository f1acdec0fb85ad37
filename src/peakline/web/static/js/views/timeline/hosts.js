/** Which hosts of a session the timeline shows: one, all, or those that a reader chooses. */

import { openDialog } from "../../core/dialog.js";
import { h } from "../../core/dom.js";
import { counted, worded } from "../../core/format.js";
import { json, sessionPath } from "../../core/api.js";
import { WORDING } from "../../core/wording.js";
import { MOST_HOSTS, formatHosts } from "./stack.js";

const LISTED = 500;

export class Hosts {
  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {string[]} names all of the session
   * @param {string[]} shown
   * @param {(hosts: string | null) => void} show what the address says of hosts; null: the one that is shown
   */
  constructor(context, names, shown, show) {
    this.context = context;
    this.names = names;
    this.shown = shown;
    this.show = show;
  }

  /** @param {boolean} isAll */
  all(isAll) {
    this.show(isAll ? "all" : null);
  }

  /** @param {string} host */
  remove(host) {
    const left = this.shown.filter((one) => one !== host);
    if (left.length) this.show(formatHosts(left));
  }

  /** Let the reader choose, from a list that a text filters. */
  async choose() {
    const chosen = new Set(this.shown);
    const list = h("ul", { class: "tl-hosts", "aria-label": "Hosts" });
    const note = h("p", { class: "quiet note", role: "status" });
    const field = h("input", { type: "text", class: "wide", spellcheck: "false", autocomplete: "off",
      "aria-label": "Filter hosts", placeholder: "Filter by rank or host", oninput: () => draw() });
    const go = h("button", { type: "submit", value: "show" }, "Show");
    const titles = await this.#titles();
    const rows = this.names.map((host) => ({ host, title: titles.get(host)?.title ?? host,
      place: titles.get(host)?.place ?? Infinity })).sort((one, other) => one.place - other.place);
    const draw = () => {
      const parts = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const matching = rows.filter(({ host, title }) =>
        parts.every((part) => `${title} ${host}`.toLowerCase().includes(part)));
      list.replaceChildren(...matching.slice(0, LISTED).map(({ host, title }) => h("li", {}, h("label", {},
        h("input", { type: "checkbox", checked: chosen.has(host), onchange: () => {
          if (!chosen.delete(host)) chosen.add(host);
          say(matching.length);
        } }), h("span", {}, title), title !== host && h("span", { class: "quiet" }, host)))));
      say(matching.length);
    };
    const say = (/** @type {number} */ matching) => {
      note.textContent = worded(matching > LISTED ? WORDING.clocks.listed : WORDING.clocks.chosen,
        { hosts: counted(chosen.size, "host"), most: MOST_HOSTS, listed: LISTED, matching });
      go.disabled = !chosen.size || chosen.size > MOST_HOSTS;
    };
    draw();
    const form = h("form", { method: "dialog", class: "stack" }, field, list, note, go);
    const { closed } = openDialog(WORDING.clocks.choice, form);
    field.focus();
    if (await closed === "show") this.show(formatHosts(this.names.filter((host) => chosen.has(host))));
  }

  /** What the ranks are called, and their order. @returns {Promise<Map<string, {title: string, place: number}>>} */
  async #titles() {
    const { session, root, signal } = this.context;
    const { data } = await json(sessionPath(session, "tools", "job"), { query: { root }, signal });
    return new Map(data.job.clocks.ranks.map((/** @type {any} */ one, /** @type {number} */ place) =>
      [one.host, { title: one.rank === null ? one.host : `rank ${one.rank}`, place }]));
  }
}
