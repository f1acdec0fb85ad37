"""Patterns that a caller gives: RE2 expressions (https://github.com/google/re2/wiki/Syntax).

RE2 takes time in proportion to the text whatever the expression, so that a pattern from a remote
caller cannot run for ever. It is also the engine of tfprof. Here it is the one inside PyArrow, with
RE2's own limits: a counted repetition makes at most 1000 copies, nested ones their product, and a
compiled pattern takes at most 8 MiB.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray
from peakline.deadline import check_deadline
from peakline.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST = 1000
_FIRST_BATCH = 16
_LARGEST_BATCH = 1 << 14
_SHORT_S = 0.02
"""Names are matched in batches, which grow while one takes less than this: between two of them the
deadline is checked, and every one compiles the pattern again."""
_NOT_RE2 = ("invalid perl operator", "invalid escape sequence", "bad repetition operator")
"""What RE2 says to what Python's own expressions have beyond it."""
_SAID_BEFORE = "Invalid regular expression: "


class Pattern:
    """One compiled pattern; raises UsageError for what is no RE2 expression."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise UsageError(f"a pattern of {len(text)} characters; at most {_LONGEST} are taken")
        if (reason := _refusal(text)) is not None:
            raise UsageError(f"{text!r:.80} is no RE2 expression: {reason}")
        self._text = text
        # An expression may leave a quotation (\Q) open, which would go on behind it.
        ends = (rf"\A(?:{text})\z", rf"\A(?:{text}\E)\z")
        self._whole = ends[0] if _refusal(ends[0]) is None else ends[1]

    def matches(self, names: Sequence[str]) -> BoolArray:
        """Per name, whether the pattern matches all of it."""
        return _each(self._whole, names)

    def is_in(self, names: Sequence[str]) -> BoolArray:
        """Per name, whether some part of it matches."""
        return _each(self._text, names)


def _each(pattern: str, names: Sequence[str]) -> BoolArray:
    import pyarrow as pa
    from pyarrow import compute

    result = np.zeros(len(names), np.bool_)
    start, size = 0, _FIRST_BATCH
    while start < len(names):
        check_deadline()
        begin = time.monotonic()
        batch = names[start : start + size]
        try:
            hits = compute.match_substring_regex(_array(batch), pattern)
        except pa.ArrowInvalid as error:
            # One that just compiled, and does not with its ends.
            raise UsageError(f"{pattern!r:.80} is no RE2 expression: {_reason(error)}") from None
        result[start : start + len(batch)] = hits.to_numpy(zero_copy_only=False)
        start += len(batch)
        if time.monotonic() - begin < _SHORT_S:
            size = min(2 * size, _LARGEST_BATCH)
    return result


def _array(names: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(names, pa.large_string())
    except UnicodeEncodeError:
        # Half of a surrogate pair is a character to RE2, and no valid UTF-8 to Arrow.
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        return pa.array(encoded, pa.large_binary()).view(pa.large_string())


def _refusal(pattern: str) -> str | None:
    """Why RE2 does not compile ``pattern``; None where it does."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        compute.match_substring_regex(_array([""]), pattern)  # nothing is compiled for none
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    reason = f"{' '.join(str(error).removeprefix(_SAID_BEFORE).split()):.80}"
    if reason.startswith(_NOT_RE2):
        return f"{reason} (it has no lookaround, backreference or possessive repetition)"
    return reason
