/** Making elements. Text is always text: names in profiles come from strangers. */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Attributes */

const SVG = "http://www.w3.org/2000/svg";
/** Characters that turn the direction of the text after them (Unicode, UAX 9). */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Attributes that are read as text. */
const TEXTS = new Set(["title", "aria-label", "alt", "placeholder"]);

/**
 * An element: `h("button", {class: "plain", onclick: save, disabled: false}, "Save")`.
 *
 * `on*` are listeners, `style` is an object of properties, `dataset` an object; `true` sets an
 * attribute without a value; false, null and undefined leave it out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

/**
 * An SVG element, as `h`.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

/**
 * A text in which what would turn its direction is spelled, as the command line spells it: a name
 * must not look like another one.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(TURNS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Put `children` in place of what is in `element`.
 * @template {Element} E
 * @param {E} element
 * @param {...(Child | Child[])} children
 * @returns {E}
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/**
 * Say something to screen readers without moving the focus.
 * @param {string} text
 */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = text;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "style" || name === "dataset") {
      const target = /** @type {HTMLElement} */ (element)[name];
      Object.assign(target, value);
    } else {
      const text = value === true ? "" : String(value);
      element.setAttribute(name, TEXTS.has(name) ? visible(text) : text);
    }
  }
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}
