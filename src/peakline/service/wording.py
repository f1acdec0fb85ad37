"""What remote callers get to read: one line of ASCII, without the places of the server's files."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable

LONGEST = 1000
"""Characters. A gRPC status travels in a header, and a header has little room."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BARE = "(root)"


def one_line(text: str, longest: int = LONGEST) -> str:
    """``text`` as one line of printable ASCII of at most ``longest`` characters.

    What ASCII has not, and what moves a terminal's cursor, is written with backslashes.
    """
    return _cut(_plain(" ".join(text.split())), longest)


def _plain(text: str) -> str:
    line = text.encode("ascii", "backslashreplace").decode("ascii")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line)


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


class Wording:
    """Messages without the absolute places of ``roots`` and of temporary files.

    A path inside a root is written from there on, which is what a caller can name. What an error
    quotes of the caller's own text (`PeaklineError.quoting`) stays as the caller wrote it: it is
    nothing new to the caller, and a change in it would show which places the server knows.
    """

    def __init__(self, roots: Iterable[str]) -> None:
        places = {tempfile.gettempdir()}
        for root in roots:
            if "://" in root:
                places.add(root.rstrip("/"))
            else:
                places |= {os.path.abspath(root), os.path.realpath(root)}  # noqa: PTH100 (as text)
        # A longer place first: one root may lie in another.
        known = sorted((place for place in places if place.strip("/")), key=len, reverse=True)
        self._places = re.compile(
            rf"(?<![\w.-])(?:{'|'.join(map(re.escape, known))})(?:(/+)|(?![\w-]|\.\w))"
        )

    def line(self, said: BaseException | str) -> str:
        """An error's message, or a text, as a caller may see it."""
        text = str(said)
        quotes = [quote for quote in getattr(said, "quotes", ()) if quote]
        if not quotes:
            return one_line(self._scrubbed(text))
        # A longer quote first: one may be a part of another.
        found = re.compile("|".join(map(re.escape, sorted(quotes, key=len, reverse=True))))
        parts, end = [], 0
        for match in found.finditer(text):
            parts += [self._scrubbed(text[end : match.start()]), match[0]]
            end = match.end()
        parts.append(self._scrubbed(text[end:]))
        return _cut(_plain("".join(parts)), LONGEST)

    def _scrubbed(self, text: str) -> str:
        return self._places.sub(lambda found: "" if found[1] else _BARE, text)
