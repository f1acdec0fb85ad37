/** Which sessions are compared, as the address says it: `first`, `second`, and others in `with`. */

/**
 * Their names, the one that the others are compared with first.
 * @param {Record<string, string>} params
 * @returns {string[]}
 */
export function comparedOf({ first = "", second = "", with: others = "" }) {
  // A name may hold whatever separates two: each is encoded.
  return [first, second, ...others.split(",").map(decoded)].filter(Boolean);
}

/**
 * What the address says of them; null: not there.
 * @param {string[]} names
 * @returns {Record<string, string | null>}
 */
export function comparedParams([first, second, ...others]) {
  return { first: first ?? null, second: second ?? null,
    with: others.map(encodeURIComponent).join(",") || null };
}

/**
 * Without what is null.
 * @param {Record<string, string | null>} params
 * @returns {Record<string, string>}
 */
export function textsOf(params) {
  return Object.fromEntries(Object.entries(params).flatMap(([name, value]) =>
    (value === null ? [] : [[name, value]])));
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
