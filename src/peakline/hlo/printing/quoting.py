"""Names and quoted text as XLA writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from peakline.formats.hlo_proto.element_types import type_names

_SOUND = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*", re.ASCII)
_OTHERS = re.compile(rb"[^A-Za-z0-9_.\-]")
_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
_PLAIN = re.compile(r"[ !#-&(-\[\]-~]*")
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[{}]', re.DOTALL)
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
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def as_value(text: str | bytes) -> str:
    """Text as it is where it looks like a JSON object, else quoted (``LexesAsJsonDict``)."""
    shown = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
    return shown if _is_object(shown) else quoted(text)


def _is_object(text: str) -> bool:
    """Whether one pair of braces holds all of it, but for blanks and comments behind."""
    if not text.startswith("{"):
        return False
    depth = 0
    for found in _STRING_OR_BRACE.finditer(text):
        piece = found[0]
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if depth == 0:
            return _AFTER.fullmatch(text, found.end()) is not None
    return False


def listed(numbers: Iterable[object]) -> str:
    """``1,2,3``."""
    return ",".join(map(str, numbers))


def braced(numbers: Iterable[object]) -> str:
    """``{1,2,3}``."""
    return f"{{{','.join(map(str, numbers))}}}"
