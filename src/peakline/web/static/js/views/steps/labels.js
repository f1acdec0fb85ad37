/** Texts of charts that have little room. */

/**
 * A name in so many letters: its end is what steps differ by.
 * @param {string} name
 * @param {number} letters
 */
export function cut(name, letters) {
  const most = Math.max(Math.floor(letters), 4);
  return name.length > most ? `…${name.slice(name.length - most + 1)}` : name;
}

/**
 * A name in so many letters, without its middle: begin and end are what ops differ by.
 * @param {string} name
 * @param {number} letters
 */
export function cutMiddle(name, letters) {
  const most = Math.max(Math.floor(letters), 5);
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

/**
 * Whole numbers.
 * @param {number} first
 * @param {number} last exclusive
 */
export function range(first, last) {
  return Array.from({ length: Math.max(last - first, 0) }, (_, place) => first + place);
}
