"""Names and quoted text as XLA writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from peakline.errors import InputError
from peakline.formats.hlo_proto.shapes import type_names

_SOUND = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*", re.ASCII)
_OTHERS = re.compile(rb"[^A-Za-z0-9_.\-]")
_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
_PLAIN = re.compile(r"[ !#-&(-\[\]-~]*")
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[{}]', re.DOTALL)
_LONG, _FEW_LONG = 1000, 4
"""Of a text that long, which many instructions may share, it is remembered how it is written."""
_FREE, _MOST_TIMES, _ITEM = 2**24, 10, 16
"""Items may be so long together, and so many times as long as the distinct ones and so many letters
for each item.
"""
_AFTER = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)


def sound_name(name: str) -> str:
    """A name with the characters that HLO text allows (``NameUniquer::GetSanitizedName``)."""
    if _SOUND.fullmatch(name) is None:
        raw = name.encode("utf-8", "replace")
        name = (_first(raw[:1]) + _OTHERS.sub(b"_", raw[1:])).decode() if raw else ""
    if name in _type_names():
        name += "_"
    if name.startswith("__") and not name.startswith("__xla_"):
        return "a" + name[1:]
    return name


def _first(letter: bytes) -> bytes:
    return letter if letter.isalpha() or letter == b"_" else b"_"


@cache
def _type_names() -> frozenset[str]:
    """The names of element types, which mean those in HLO text; ``tuple`` does not."""
    return frozenset(type_names().values()) - {"tuple", ""}


def quoted(text: str | bytes) -> str:
    """Text between double quotes, escaped as in C (``absl::CEscape``)."""
    if isinstance(text, str):
        if _PLAIN.fullmatch(text):
            return f'"{text}"'
        text = text.encode("utf-8", "replace")
    return _long_escaped(text) if len(text) > _LONG else _all_escaped(text)


def _all_escaped(text: bytes) -> str:
    return f'"{"".join(map(_escaped, text))}"'


_long_escaped = lru_cache(_FEW_LONG)(_all_escaped)


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def as_value(text: str | bytes) -> str:
    """Text as it is where it looks like a JSON object, else quoted (``LexesAsJsonDict``)."""
    return _long_value(text) if len(text) > _LONG else _value(text)


def _value(text: str | bytes) -> str:
    shown = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
    return shown if _is_object(shown) else quoted(text)


_long_value = lru_cache(_FEW_LONG)(_value)


def _is_object(text: str) -> bool:
    """Whether one pair of braces holds all of it, but for blanks and comments behind."""
    if not text.startswith("{"):
        return False
    depth = 0
    for result in _STRING_OR_BRACE.finditer(text):
        piece = result[0]
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if depth == 0:
            return _AFTER.fullmatch(text, result.end()) is not None
    return False


def joined(items: Sequence[str]) -> str:
    """Items with commas and blanks between; InputError as by `check_items`."""
    check_items(items)
    return ", ".join(items)


def check_items(items: Sequence[str]) -> None:
    """Raise InputError where the same very long texts stand too often in what an instruction says:
    a name of a megabyte in place of each of a million operands fills any memory.
    """
    size = sum(map(len, items))
    if size > _FREE and size > _MOST_TIMES * (sum(map(len, set(items))) + _ITEM * len(items)):
        raise InputError(
            "an instruction would say the same very long texts too often: the program is not "
            "written as text"
        )


def listed(numbers: Iterable[object]) -> str:
    """``1,2,3``."""
    return ",".join(map(str, numbers))


def braced(numbers: Iterable[object]) -> str:
    """``{1,2,3}``."""
    return f"{{{','.join(map(str, numbers))}}}"
