/** The scripts that the page adds to itself: no others, whoever says so (Trusted Types). */

const SCRIPTS = {
  layout: "assets/js/views/graph/layout_worker.js",
};

const policy = /** @type {any} */ (window)["trustedTypes"]?.createPolicy("peakline", {
  createScriptURL: (/** @type {string} */ name) => address(name),
});

/**
 * The address of a script, as browsers with Trusted Types take it.
 * @param {keyof typeof SCRIPTS} name
 * @returns {string}
 */
export function scriptUrl(name) {
  return policy ? policy.createScriptURL(name) : address(name);
}

/** @param {string} name */
function address(name) {
  const result = Object.entries(SCRIPTS).find(([known]) => known === name);
  if (!result) throw new TypeError(`the page has no script ${name}`);
  return result[1];
}
