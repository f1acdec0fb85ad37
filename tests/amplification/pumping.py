"""Texts that make an expression try everything, from its own parts: what can be said again is."""

import re
from collections.abc import Iterator, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_ENDS = ("\0!", "", "\n\n", "!\n")
"""What no expression expects at the end."""


def pumped(pattern: re.Pattern[Any], size: int, *, few: bool) -> Iterator[str]:
    """Texts of about ``size`` letters, a twelfth of them where they shall be few."""
    raw = pattern.pattern
    text = raw.decode("latin-1") if isinstance(raw, bytes) else raw
    tree = parser.parse(
        text, pattern.flags & ~re.UNICODE if isinstance(raw, bytes) else pattern.flags
    )
    seen = set[str]()
    for before, again in _parts(list(tree), ""):
        for unit in {again} if few else {again, again * 2 + "_", again + " "}:
            if not unit:
                continue
            for end in _ENDS[:1] if few else _ENDS:
                made = before + unit * (size // len(unit)) + end
                if made not in seen:
                    seen.add(made)
                    yield made


def _parts(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """A text that leads to a part of the expression, and a text of that part."""
    for place, (kind, value) in enumerate(nodes):
        here = _text([nodes[place]])
        yield before, here
        yield "", before + here
        for ahead in range(place + 1, min(place + 4, len(nodes))):
            yield before, _text(nodes[place : ahead + 1])
        for inner in _inner(kind, value):
            yield from _parts(inner, before)
        before += here


def _inner(kind: Any, value: Any) -> list[list[Any]]:
    if kind in {op.MAX_REPEAT, op.MIN_REPEAT, getattr(op, "POSSESSIVE_REPEAT", None)}:
        return [list(value[2])]
    if kind is op.SUBPATTERN:
        return [list(value[3])]
    if kind is op.BRANCH:
        return [list(one) for one in value[1]]
    if kind is getattr(op, "ATOMIC_GROUP", None):
        return [list(value)]
    if kind in {op.ASSERT, op.ASSERT_NOT}:
        return [list(value[1])]
    return []


def _text(nodes: Sequence[Any]) -> str:
    """A short text that matches."""
    return "".join(_one(kind, value) for kind, value in nodes)


def _one(kind: Any, value: Any) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is op.ANY:
        return "a"
    if kind is op.IN:
        return _of_set(value)
    if kind in {op.MAX_REPEAT, op.MIN_REPEAT, getattr(op, "POSSESSIVE_REPEAT", None)}:
        return _text(list(value[2])) * max(value[0], 1)
    if kind is op.SUBPATTERN:
        return _text(list(value[3]))
    if kind is op.BRANCH:
        return _text(list(value[1][0]))
    if kind is getattr(op, "ATOMIC_GROUP", None):
        return _text(list(value))
    return ""


_LETTERS = "a1 _./:A(-\n[<{\"'\\,=%$#@!~^&*+;?|`)]>}\t\0é"


def _of_set(items: Any) -> str:
    result = re.compile("[" + "".join(map(_as_text, items)) + "]", re.DOTALL)
    return next((letter for letter in _LETTERS if result.match(letter)), "a")


def _as_text(item: Any) -> str:
    kind, value = item
    if kind is op.NEGATE:
        return "^"
    if kind is op.LITERAL:
        return re.escape(chr(value))
    if kind is op.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    if kind is op.CATEGORY:
        return _CATEGORIES[value]
    return ""


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
