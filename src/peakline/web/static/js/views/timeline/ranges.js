/** Sets of whole numbers as a short text, `0,3,8-12`: of lines, in addresses and questions. */

/**
 * @param {Iterable<number>} numbers
 * @returns {string} ascending, each once
 */
export function formatRanges(numbers) {
  const sorted = [...new Set(numbers)].sort((one, other) => one - other);
  const parts = [];
  for (let place = 0; place < sorted.length; place++) {
    const first = /** @type {number} */ (sorted[place]);
    let last = first;
    while (sorted[place + 1] === last + 1) {
      last += 1;
      place += 1;
    }
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.join(",");
}

/**
 * @param {string} text
 * @param {number} most how many numbers there are: larger ones are left out
 * @returns {number[]}
 */
export function parseRanges(text, most) {
  const numbers = [];
  for (const part of text.split(",")) {
    const match = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part.trim());
    if (!match) continue;
    const last = Math.min(Number(match[2] ?? match[1]), most - 1);
    for (let number = Number(match[1]); number <= last; number++) numbers.push(number);
  }
  return numbers;
}
