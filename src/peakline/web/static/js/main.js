/** The page: starts the theme, the shell and the router. */

import { access } from "./core/api.js";
import { askForToken } from "./core/dialog.js";
import { startTheme } from "./core/theme.js";
import { Router } from "./shell/router.js";

startTheme();
access.ask = once(askForToken);
new Router().start();

/**
 * Several questions that are refused at a time ask the reader once.
 * @template T
 * @param {() => Promise<T>} ask
 * @returns {() => Promise<T>}
 */
function once(ask) {
  /** @type {Promise<T> | null} */
  let running = null;
  return () => {
    running ??= ask().finally(() => void (running = null));
    return running;
  };
}
