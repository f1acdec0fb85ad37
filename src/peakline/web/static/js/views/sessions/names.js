/** Names that sessions can have, made from those that files have. */

const MOST_BYTES = 200;
const SUFFIXES = /(\.(gz|pb|xplane|json|trace|pt|log|txt|pickle|pprof|profile|pbtxt))+$/i;

/**
 * A name that the service takes: one part of a path, without a dot or a dash in front and without
 * characters that nobody sees.
 * @param {string} text
 */
export function safeName(text) {
  let name = text.replace(/[/\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "_").replace(/^[.\-\s]+/, "").trim();
  while (new TextEncoder().encode(name).length > MOST_BYTES) name = [...name].slice(0, -1).join("");
  return name || "upload";
}

/**
 * What a file's session is called at first.
 * @param {string} fileName
 * @param {readonly string[]} taken names of other sessions
 */
export function sessionName(fileName, taken) {
  return freeName(safeName(fileName.replace(SUFFIXES, "")), taken);
}

/**
 * `name`, or one like it that no session has.
 * @param {string} name
 * @param {readonly string[]} taken
 */
export function freeName(name, taken) {
  const base = name.replace(/_\d+$/, "");
  let free = name;
  for (let number = 2; taken.includes(free); number++) free = `${base}_${number}`;
  return free;
}
