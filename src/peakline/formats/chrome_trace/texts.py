"""Distinct texts of JSON members, escapes undone, without a Python object per row."""

from __future__ import annotations

import json

import numpy as np

from peakline.arrays import Int32Array, UInt8Array
from peakline.kernels import json_kinds
from peakline.safe_text import valid_text
from peakline.wire import Buffer, Interner, Spans

_IS_PLAIN = np.zeros(json_kinds.OBJECT + 1, np.bool_)
_IS_PLAIN[[json_kinds.FALSE, json_kinds.TRUE, json_kinds.NUMBER, json_kinds.STRING]] = True


def unescaped(text: str) -> str:
    """What a JSON string means that is written ``text``; as it stands where that is not valid.

    A half of a surrogate pair becomes U+FFFD.
    """
    try:
        meaning: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return valid_text(meaning)


class Texts:
    """Codes for the values of one kind of member, equal for equal texts.

    A number has the text it is written with, so ``5`` and ``"5"`` are the same: writers quote
    thread ids in one event and not in the next.
    """

    __retained__ = "_plain _escaped _meanings"

    def __init__(self) -> None:
        self._plain = Interner()
        self._escaped = Interner()
        self._meanings = np.zeros(0, np.int32)

    def codes(self, buffer: Buffer, kinds: UInt8Array, spans: Spans) -> Int32Array:
        """A code per row; -1 where there is no member, or null, an object or an array."""
        plain = _IS_PLAIN[kinds]
        if plain.all():
            return self._plain.add(buffer, spans)
        codes = np.full(kinds.size, -1, np.int32)
        rows = np.flatnonzero(plain)
        codes[rows] = self._plain.add(buffer, spans.take(rows))
        rows = np.flatnonzero(kinds == json_kinds.ESCAPED)
        if rows.size:
            raw = self._escaped.add(buffer, spans.take(rows))
            new = self._escaped.values[self._meanings.size :]
            meanings = [self.add(unescaped(text)) for text in new]
            self._meanings = np.append(self._meanings, np.array(meanings, np.int32))
            codes[rows] = self._meanings[raw]
        return codes

    def add(self, text: str) -> int:
        """The code of one text."""
        return self._plain.add_bytes(text.encode())

    def add_spans(self, buffer: Buffer, spans: Spans) -> Int32Array:
        """The codes of texts that stand in a buffer as they are."""
        return self._plain.add(buffer, spans)

    def code_of(self, text: str) -> int:
        """The code of a text that has been met, or -2."""
        return self._plain.code_of(text.encode())

    @property
    def values(self) -> list[str]:
        """The texts by code."""
        return self._plain.values
