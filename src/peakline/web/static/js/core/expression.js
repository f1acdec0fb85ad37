/**
 * Regular expressions that take time in proportion to the text, whatever they are: those of the
 * browser may take for ever (`(a+)+$`). All states that an expression may be in are followed at once
 * (Thompson's construction). It has what RE2 has and a reader types: `.`, classes, `|`, groups, `*`,
 * `+`, `?`, `{2,5}`, `^`, `$`, `\\d`, `\\w`, `\\s`. Letters match in any case.
 */

const LONGEST = 200;
const MOST_STATES = 1500;
const MOST_TIMES = 100;
const LONGEST_TEXT = 500;

/** @typedef {(letter: string) => boolean} Test */
/**
 * One state: it takes a letter, or leads on without one.
 * @typedef {{test?: Test, at?: "begin" | "end", next: number[]}} State
 */

/** @type {Record<string, Test>} */
const KINDS = {
  d: (letter) => letter >= "0" && letter <= "9",
  w: (letter) => /[0-9a-z_]/i.test(letter),
  s: (letter) => /\s/.test(letter),
};
/** @type {Record<string, string>} */
const NAMED = { t: "\t", n: "\n", r: "\r" };

/**
 * Whether an expression is found somewhere in a text.
 * @param {string} source without the slashes
 * @returns {(text: string) => boolean}
 * @throws {SyntaxError} in one line, for what is no expression or none of these
 */
export function expression(source) {
  const states = new Reader(source).read();
  return (text) => isIn(states, text.slice(0, LONGEST_TEXT).toLowerCase());
}

/** Reads an expression into states; the last one is the end. */
class Reader {
  #at = 0;
  /** @type {State[]} */
  #states = [];

  /** @param {string} source */
  constructor(source) {
    this.source = source;
    if (source.length > LONGEST) this.#fail(`longer than ${LONGEST} letters`);
  }

  read() {
    const { begin, ends } = this.#either();
    if (this.#at < this.source.length) this.#fail("a ) without its (");
    const last = this.#add({ next: [] });
    this.#join(ends, last);
    return { states: this.#states, begin, last };
  }

  /** @returns {{begin: number, ends: number[]}} */
  #either() {
    const first = this.#row();
    const begins = [first.begin], ends = [...first.ends];
    while (this.#take("|")) {
      const next = this.#row();
      begins.push(next.begin);
      ends.push(...next.ends);
    }
    return begins.length === 1 ? first : { begin: this.#add({ next: begins }), ends };
  }

  #row() {
    const begin = this.#add({ next: [] });
    let ends = [begin];
    while (this.#at < this.source.length && !"|)".includes(this.source[this.#at] ?? "")) {
      const piece = this.#repeated();
      this.#join(ends, piece.begin);
      ends = piece.ends;
    }
    return { begin, ends };
  }

  /** One piece and how often it may come. @returns {{begin: number, ends: number[]}} */
  #repeated() {
    const from = this.#at;
    let piece = this.#piece();
    const until = this.#at;
    for (;;) {
      if (this.#take("*")) piece = this.#loop(piece, true);
      else if (this.#take("+")) piece = this.#loop(piece, false);
      else if (this.#take("?")) piece = this.#optional(piece);
      else break;
      this.#take("?");
    }
    const counted = /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(this.source.slice(this.#at));
    if (!counted) return piece;
    const [whole, least = "", comma, most = ""] = counted;
    const low = Number(least), high = most ? Number(most) : comma ? Infinity : low;
    if (low > MOST_TIMES || (high !== Infinity && high > MOST_TIMES) || high < low) {
      this.#fail(`${whole}: at most ${MOST_TIMES} times, the smaller number first`);
    }
    const again = () => {
      const back = this.#at;
      this.#at = from;
      const copy = this.#piece();
      if (this.#at !== until) this.#fail("{} behind * + ?");
      this.#at = back;
      return copy;
    };
    const begin = this.#add({ next: [] });
    let ends = [begin];
    for (let time = 0; time < low; time++) {
      const copy = again();
      this.#join(ends, copy.begin);
      ends = copy.ends;
    }
    if (high === Infinity) {
      const rest = this.#loop(again(), true);
      this.#join(ends, rest.begin);
      ends = rest.ends;
    } else {
      for (let time = low; time < high; time++) {
        const copy = this.#optional(again());
        this.#join(ends, copy.begin);
        ends = copy.ends;
      }
    }
    this.#at += whole.length;
    return { begin, ends };
  }

  /** @returns {{begin: number, ends: number[]}} */
  #piece() {
    const letter = this.source[this.#at++] ?? "";
    if (letter === "(") {
      if (this.#take("?") && !this.#take(":")) this.#fail("(? is known as (?: only, and no lookaround");
      const inside = this.#either();
      if (!this.#take(")")) this.#fail("a ( without its )");
      return inside;
    }
    if ("*+?".includes(letter)) this.#fail(`${letter} without what it repeats`);
    if (letter === "^" || letter === "$") {
      const place = this.#add({ at: letter === "^" ? "begin" : "end", next: [] });
      return { begin: place, ends: [place] };
    }
    const test = letter === "." ? () => true : letter === "[" ? this.#kinds()
      : letter === "\\" ? this.#escaped() : same(letter);
    const place = this.#add({ test, next: [] });
    return { begin: place, ends: [place] };
  }

  /** What follows a backslash. @returns {Test} */
  #escaped() {
    const letter = this.source[this.#at++];
    if (letter === undefined) return this.#fail("a \\ at the end");
    const kind = KINDS[letter.toLowerCase()];
    if (kind) return letter === letter.toLowerCase() ? kind : (one) => !kind(one);
    if (NAMED[letter]) return same(NAMED[letter] ?? "");
    if (/[0-9A-Za-z]/.test(letter)) this.#fail(`\\${letter} is not known`);
    return same(letter);
  }

  /** A class, behind its [. @returns {Test} */
  #kinds() {
    const isNot = this.#take("^");
    /** @type {Test[]} */
    const tests = [];
    for (let isFirst = true; isFirst || this.source[this.#at] !== "]"; isFirst = false) {
      const low = this.source[this.#at++];
      if (low === undefined) return this.#fail("a [ without its ]");
      if (low === "\\") {
        tests.push(this.#escaped());
        continue;
      }
      const high = this.source[this.#at + 1];
      if (this.source[this.#at] !== "-" || high === "]" || high === undefined) {
        tests.push(same(low));
        continue;
      }
      this.#at += 2;
      if (high < low) this.#fail(`${low}-${high} is no range`);
      tests.push((letter) => (letter >= low && letter <= high)
        || (letter.toUpperCase() >= low && letter.toUpperCase() <= high));
    }
    this.#at++;
    return (letter) => tests.some((test) => test(letter)) !== isNot;
  }

  /**
   * @param {{begin: number, ends: number[]}} piece
   * @param {boolean} mayLack
   */
  #loop({ begin, ends }, mayLack) {
    const turn = this.#add({ next: [begin] });
    this.#join(ends, turn);
    return { begin: mayLack ? turn : begin, ends: [turn] };
  }

  /** @param {{begin: number, ends: number[]}} piece */
  #optional({ begin, ends }) {
    const fork = this.#add({ next: [begin] });
    return { begin: fork, ends: [...ends, fork] };
  }

  /** @param {State} state */
  #add(state) {
    if (this.#states.length >= MOST_STATES) this.#fail("it repeats too much");
    return this.#states.push(state) - 1;
  }

  /** @param {number[]} ends @param {number} to */
  #join(ends, to) {
    for (const end of ends) this.#states[end]?.next.push(to);
  }

  /** @param {string} letter */
  #take(letter) {
    if (this.source[this.#at] !== letter) return false;
    this.#at++;
    return true;
  }

  /** @param {string} why @returns {never} */
  #fail(why) {
    throw new SyntaxError(why);
  }
}

/** @param {string} letter @returns {Test} */
function same(letter) {
  const lower = letter.toLowerCase();
  return (one) => one === lower;
}

/**
 * @param {{states: State[], begin: number, last: number}} machine
 * @param {string} text
 */
function isIn({ states, begin, last }, text) {
  let here = new Set();
  /** @param {Set<number>} into @param {number} from @param {number} at */
  const reach = (into, from, at) => {
    const waiting = [from];
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const state = states[one];
      if (!state || into.has(one)) continue;
      if ((state.at === "begin" && at > 0) || (state.at === "end" && at < text.length)) continue;
      into.add(one);
      if (!state.test) waiting.push(...state.next);
    }
  };
  for (let at = 0; at <= text.length; at++) {
    reach(here, begin, at);
    if (here.has(last)) return true;
    const letter = text[at];
    if (letter === undefined) return false;
    const next = new Set();
    for (const one of here) {
      const state = states[one];
      if (state?.test?.(letter)) for (const to of state.next) reach(next, to, at + 1);
    }
    here = next;
  }
  return false;
}
