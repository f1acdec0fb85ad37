"""Patterns that a caller gives: RE2 expressions (https://github.com/google/re2/wiki/Syntax).

RE2 takes time in proportion to the text whatever the expression, so that a pattern from a remote
caller cannot run for ever. It is also the engine of tfprof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from peakline.arrays import BoolArray
from peakline.deadline import check_deadline
from peakline.errors import UsageError

_LONGEST = 1000
_MOST_MEMORY = 2 << 20
"""Bytes that a compiled pattern may take: repetitions of repetitions need more, and would need
as many steps for every character."""
_BETWEEN_CHECKS = 1024
_NOT_RE2 = ("invalid perl operator", "invalid escape sequence", "bad repetition operator")
"""What RE2 says to what Python's own expressions have beyond it."""


class Pattern:
    """One compiled pattern; raises UsageError for what is no RE2 expression."""

    def __init__(self, text: str) -> None:
        import re2

        if len(text) > _LONGEST:
            raise UsageError(f"a pattern of {len(text)} characters; at most {_LONGEST} are taken")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MOST_MEMORY
        try:
            self._compiled = re2.compile(text, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise UsageError(f"{text!r:.80} is no RE2 expression: {_reason(error)}") from None

    def matches(self, names: Sequence[str]) -> BoolArray:
        """Per name, whether the pattern matches all of it."""
        return _each(self._compiled.fullmatch, names)

    def is_in(self, names: Sequence[str]) -> BoolArray:
        """Per name, whether some part of it matches."""
        return _each(self._compiled.search, names)


def _each(match: Callable[[bytes], object], names: Sequence[str]) -> BoolArray:
    found = np.zeros(len(names), np.bool_)
    for number, name in enumerate(names):
        if number % _BETWEEN_CHECKS == 0:
            check_deadline()
        found[number] = match(name.encode("utf-8", "surrogatepass")) is not None
    return found


def _reason(error: Exception) -> str:
    text = error.args[0] if isinstance(error.args[0], bytes) else str(error).encode()
    reason = f"{' '.join(text.decode('utf-8', 'replace').split()):.80}"
    if reason.startswith(_NOT_RE2):
        return f"{reason} (it has no lookaround, backreference or possessive repetition)"
    return reason
