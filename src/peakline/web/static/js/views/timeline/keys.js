/** The keys of the timeline, as trace viewers have them. */

import { isTyping, moveByKey } from "../../core/gestures.js";

/** @type {[string, string][]} */
export const HELP = [
  ["W S, Ctrl wheel", "zoom in and out where the pointer is"],
  ["A D, drag", "earlier and later"],
  ["wheel, drag, ↑ ↓ Page Up Page Down", "up and down through the lanes"],
  ["← →", "previous and next event on the row of the chosen one; else earlier and later"],
  ["↑ ↓", "the event around the chosen one, and the first one in it"],
  ["Enter or F", "zoom to the chosen event, or to the marked range"],
  ["M, Shift M", "mark the range of the chosen event, on all lines or on its own"],
  ["Shift drag", "measure a range: along a row for all lines, over several rows for those"],
  [", .", "back and on along an arrow of the chosen event"],
  ["B", "set a flag at the chosen event, or where the pointer is"],
  ["/", "search; Enter and Shift Enter go to the next and the previous match"],
  ["N, Shift N", "next and previous match"],
  ["[ ]", "follow the previous and the next step"],
  ["0", "all of the profile"],
  ["Esc", "clear: the choice, then the range, then the search"],
];

const SCROLL_PX = 51;

/**
 * What the keys do.
 * @typedef {object} Actions
 * @property {() => number} at the time that zooming keeps in place
 * @property {() => boolean} hasChoice
 * @property {(way: "previous" | "next" | "parent" | "child") => void} go
 * @property {() => void} zoom
 * @property {(isOwn: boolean) => void} mark with true on the chosen event's own line
 * @property {(way: 1 | -1) => void} follow an arrow
 * @property {() => void} flag
 * @property {() => void} search
 * @property {(way: "previous" | "next") => void} match
 * @property {(direction: 1 | -1) => void} step
 * @property {() => void} clear
 * @property {(by: number, pages?: boolean) => void} scroll
 */

/**
 * @param {import("../../core/viewport.js").Viewport} viewport
 * @param {Actions} actions
 * @param {AbortSignal} signal
 */
export function attachKeys(viewport, actions, signal) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const isControl = event.target instanceof Element && event.target.closest("button, a, summary");
    if (isControl && (event.key === "Enter" || event.key === " ")) return;
    if (!act(event) && !moveByKey(event, viewport, actions.at())) return;
    event.preventDefault();
  }, { signal });

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it was one of them
   */
  function act({ key, shiftKey }) {
    const has = actions.hasChoice();
    switch (key.length === 1 ? key.toLowerCase() : key) {
      case "ArrowLeft": if (!has) return false; actions.go("previous"); break;
      case "ArrowRight": if (!has) return false; actions.go("next"); break;
      case "ArrowUp": if (has) actions.go("parent"); else actions.scroll(-SCROLL_PX); break;
      case "ArrowDown": if (has) actions.go("child"); else actions.scroll(SCROLL_PX); break;
      case "PageUp": actions.scroll(-1, true); break;
      case "PageDown": actions.scroll(1, true); break;
      case "Enter": case "f": actions.zoom(); break;
      case "m": actions.mark(shiftKey); break;
      case ".": actions.follow(1); break;
      case ",": actions.follow(-1); break;
      case "b": actions.flag(); break;
      case "/": actions.search(); break;
      case "n": actions.match(shiftKey ? "previous" : "next"); break;
      case "[": actions.step(-1); break;
      case "]": actions.step(1); break;
      case "Escape": actions.clear(); break;
      default: return false;
    }
    return true;
  }
}
