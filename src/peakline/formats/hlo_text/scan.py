"""Where the parts of a text in HLO's syntax begin and end: patterns, and brackets that match.

Everything is found in time linear in the text, and no bracket is followed by recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from peakline.errors import InputError

SPACE = re.compile(rb"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
"""White space and comments."""
COMMENT = re.compile(rb"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)")
"""One that does not end goes on to the end: who looks for the next one would read that again."""

_NAME = rb'%?([^\s=(){},"/*\[\]]++[^\s=(){},"]*+|"(?:[^"\\\n]++|\\.)++")'
NAME = re.compile(_NAME)
ARRAY = rb"[a-z]\w*+\[[^\]\n]*+\](?:\{[^{}\n]*+\})?+"
"""The shape of what is no tuple, but for layouts that hold a shape of their own."""
INSTRUCTION = re.compile(
    rb"\s*+(ROOT\s++)?+" + _NAME + rb"\s*+=\s*+(?:(" + ARRAY + rb")\s++([a-z][\w\-]*+)\()?+"
)
OPCODE = re.compile(rb"\s*+([a-z][\w\-]*+)\(")
FLAT_OPERANDS = re.compile(rb'([^()"]*+)\)')
COMPUTATION = re.compile(rb"(ENTRY\s++)?+" + _NAME)
FLAT_SIGNATURE = re.compile(rb"\s*+\([^()]*+\)\s*+->\s*+" + ARRAY + rb"\s*+(?=\{)")
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb"[^{}\"]++|" + _STRING
ATTRIBUTE = re.compile(
    rb"\s*+,\s*+([A-Za-z_][\w\-.]*+)=(?:"
    rb"(" + _STRING + rb"|\{(?:" + _FLAT + rb"|\{(?:" + _FLAT + rb")*+\})*+\})"
    rb"|(?![\"{(])((?:[^\s,\[({}\"]++|\[[^\]\n]*+\](?:\{[^{}\n]*+\})?+|\([^)\n]*+\))++"
    rb"(?:\s\{[^{}\n]*+\})?+))?+",
    re.DOTALL,
)
"""A name, and a value whose braces go two deep: in quotes or braces, or bare."""

_QUOTED = _STRING + rb'|\\[\\"]'
"""A string. Behind a quote that nothing closes all others are escaped, and begin none: who tried
each of them would read all the rest each time.
"""
_BRACKETS = re.compile(rb"[(){}\[\]]|" + _QUOTED, re.DOTALL)
_OPEN, _CLOSE = b"({[", b")}]"


class BrokenText(InputError):
    """The text breaks the syntax at ``offset``, where ``expected`` should be."""

    def __init__(self, text: bytes, offset: int, expected: str) -> None:
        line = text.count(b"\n", 0, offset) + 1
        there = text[offset : offset + 40].partition(b"\n")[0].decode("utf-8", "replace")
        super().__init__(f"line {line}: expected {expected}, found {there!r}")
        self.offset = offset


def skip(text: bytes, at: int) -> int:
    """The end of the white space and the comments at ``at``."""
    result = SPACE.match(text, at)
    return result.end() if result else at


def closing(text: bytes, at: int, end: int | None = None) -> int:
    """The offset behind the bracket that closes the one at ``at``; -1 where none does.

    Brackets in quotes do not count; those of other kinds must match, too.
    """
    inside = bytearray()
    for result in _BRACKETS.finditer(text, at, len(text) if end is None else end):
        one = result[0]
        if one in _OPEN:
            inside += one
        elif one in _CLOSE:
            if not inside or _OPEN.index(inside.pop()) != _CLOSE.index(one):
                return -1
            if not inside:
                return result.end()
    return -1


def items(text: bytes) -> Iterator[bytes]:
    """What stands between the commas of ``text`` that are in no brackets; nothing of nothing."""
    if not text.strip():
        return
    if not any(one in text for one in (b"(", b"{", b"[", b'"')):
        yield from (part.strip() for part in text.split(b","))
        return
    start, deep = 0, 0
    for result in _SEPARATORS.finditer(text):
        one = result[0]
        if one in _OPEN:
            deep += 1
        elif one in _CLOSE:
            deep -= 1
        elif one == b"," and not deep:
            yield text[start : result.start()].strip()
            start = result.end()
    yield text[start:].strip()


_SEPARATORS = re.compile(rb"[(){}\[\],]|" + _QUOTED, re.DOTALL)

_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f",
            b"v": b"\v"}  # fmt: skip


def unquoted(value: bytes) -> bytes:
    """What a text in quotes stands for, its escapes those of C; any other value is itself."""
    if value[:1] != b'"':
        return value
    inner = value[1:-1]
    return _ESCAPE.sub(_escaped, inner) if b"\\" in inner else inner


def _escaped(result: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = result.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 255,))
    if hexadecimal is not None:
        return bytes((int(hexadecimal, 16),))
    return _LETTERS.get(letter, letter)


def attributes(text: bytes, at: int) -> Iterator[tuple[bytes, bytes, int]]:
    """The attributes behind ``at``: name, value, and where each ends. Raises BrokenText."""
    while (result := ATTRIBUTE.match(text, at)) is not None:
        value, at = attribute_value(text, result)
        yield result[1], value, at


def attribute_value(text: bytes, result: re.Match[bytes]) -> tuple[bytes, int]:
    """The value of an attribute that `ATTRIBUTE` found, and its end. Raises BrokenText."""
    value = result[2] or result[3]
    if value is not None:
        return value, result.end()
    end = closing(text, result.end()) if result.end() < len(text) else -1
    if end < 0 or text[result.end()] not in b"{(":
        raise BrokenText(text, result.end(), "a value")
    return text[result.end() : end], end
