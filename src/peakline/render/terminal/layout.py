"""Lines on a terminal: how wide a text is, where it is wrapped, in which colors it is drawn.

Every part of an answer makes its lines for a width; without one (a pipe, a file) nothing is cut,
wrapped or colored, so that programs find whole names.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TextIO

from peakline.safe_text import one_line

PROSE = 100
"""Sentences are wrapped at this width where the terminal has more."""
INDENT = 2
_USUAL = 80
"""The columns of a terminal that does not say how many it has."""
_LEAST = 20
"""A narrower terminal gets lines of this width, which it cuts itself."""
_GLUE = "\0"
_UNIT = re.compile(r"(?<=\d) (?=(?:[KMGTPE]i?B|B|ns|us|ms|s|ps)\b)")
_SGR = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

Span = tuple[str, str]
"""A text and its style: words of `_SGR`, blanks between them."""
Line = list[Span]


class Part(Protocol):
    """What an answer is made of: it makes its lines for a width, None without one."""

    def lines(self, width: int | None) -> Iterator[Line]: ...  # noqa: D102

    def left_out(self, width: int | None) -> Sequence[str]:
        """The headings of columns for which that width has no room."""
        ...


Shown = Part | str


def width_of(text: str) -> int:
    """The columns that ``text`` takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def begin_of(text: str, room: int) -> str:
    """The longest begin of ``text`` that takes at most ``room`` columns."""
    if text.isascii():
        return text[: max(room, 0)]
    end = 0
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        end += 1
    return text[:end]


def end_of(text: str, room: int) -> str:
    """The longest end of ``text`` that takes at most ``room`` columns."""
    if text.isascii():
        return text[len(text) - room :] if 0 < room < len(text) else text[: room and len(text)]
    start = len(text)
    while start and (room := room - _width(text[start - 1])) >= 0:
        start -= 1
    # A mark that combines with what is cut off would stand on the ellipsis.
    while start < len(text) and not _width(text[start]):
        start += 1
    return text[start:]


def cut(text: str, room: int | None) -> str:
    """``text`` in at most ``room`` columns: its begin and its end say most."""
    if room is None or width_of(text) <= room:
        return text
    room = max(room, 3)
    head = (room - 1) // 2
    return f"{begin_of(text, head)}…{end_of(text, room - 1 - head)}"


def wrapped(text: str, width: int | None, *, hang: int = 0, is_whole: bool = False) -> list[str]:
    """``text`` in lines of at most ``width`` columns, broken at blanks; those after the first begin
    with ``hang`` blanks. A number and its unit stay together; a longer word is cut in its middle,
    or with ``is_whole`` left to the terminal.
    """
    if width is None or width_of(text) <= width:
        return [text]
    room = max(width - hang, 3)
    result: list[str] = []
    line = ""
    # Blanks at the begin are a place, not a gap.
    start = text[: len(text) - len(text.lstrip())]
    for word in _UNIT.sub(_GLUE, text.strip()).split(" "):
        whole = cut(word.replace(_GLUE, " "), None if is_whole else room - len(start))
        grown = f"{line} {whole}" if line.strip() else f"{start}{whole}"
        is_over = width_of(grown) > (room if result else width)
        if line.strip() and is_over and width_of(whole) <= room:
            result.append(line)
            grown = f"{start}{whole}"
        line = grown
    result.append(line)
    return [result[0], *(" " * hang + one for one in result[1:])]


@dataclass(frozen=True)
class Text:
    """A sentence or a name in one style; names from files are text, never instructions.

    Of a text that ``is_whole`` no word is cut: it says what to type.
    """

    text: str
    style: str = ""
    hang: int = 0
    is_prose: bool = True
    is_whole: bool = False

    def lines(self, width: int | None) -> Iterator[Line]:
        """The sentence, wrapped at blanks."""
        room = min(width, PROSE) if width is not None and self.is_prose else width
        text = one_line(self.text)
        for line in wrapped(text, room, hang=self.hang, is_whole=self.is_whole):
            yield [(line, self.style)]

    def left_out(self, width: int | None) -> Sequence[str]:  # noqa: ARG002  (as a `Part`)
        """Nothing."""
        return ()


@dataclass(frozen=True)
class Indented:
    """A part, some columns to the right."""

    part: Part
    by: int = INDENT

    def lines(self, width: int | None) -> Iterator[Line]:
        """The lines of the part, each after blanks."""
        if width is not None and getattr(self.part, "is_prose", False):
            width = min(width, PROSE)
        for line in self.part.lines(None if width is None else width - self.by):
            yield [(" " * self.by, ""), *line]

    def left_out(self, width: int | None) -> Sequence[str]:
        """What the part leaves out."""
        return self.part.left_out(None if width is None else width - self.by)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that ``stream`` (default: standard output) is, of which
    ``COLUMNS`` has the first word; None where it is none, and nothing is cut.
    """
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return None
    # The terminal of `shutil` is standard output, which may be a pipe where errors are not.
    columns = shutil.get_terminal_size((0, 0)).columns
    with suppress(OSError, ValueError):
        columns = columns or os.get_terminal_size(stream.fileno()).columns
    return max(columns or _USUAL, _LEAST)


def has_colors(stream: TextIO) -> bool:
    """Whether ``stream`` is drawn in colors: a terminal, unless ``NO_COLOR`` or ``TERM=dumb`` says
    no; anything where ``FORCE_COLOR`` says yes.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def painted(line: Line, *, colors: bool) -> str:
    """A line as it is printed, without blanks at its end."""
    spans = [span for span in line if span[0]]
    while spans and not spans[-1][0].rstrip():
        spans.pop()
    if spans:
        spans[-1] = (spans[-1][0].rstrip(), spans[-1][1])
    return "".join(paint(text, style) if colors else text for text, style in spans)


def paint(text: str, style: str) -> str:
    """``text`` in a style, and the terminal's own after it."""
    codes = ";".join(_SGR[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text.strip() else text


def show(parts: Iterable[Shown], stream: TextIO | None = None) -> None:
    """Print ``parts`` below one another on ``stream`` (default: standard output).

    Lines fit the terminal; into a pipe or file nothing is cut or wrapped. Columns for which it has
    no room are named once, in the end.
    """
    stream = sys.stdout if stream is None else stream
    width, colors = terminal_width(stream), has_colors(stream)
    left_out: dict[str, None] = {}
    for one in parts:
        part = Text(one) if isinstance(one, str) else one
        for line in part.lines(width):
            print(painted(line, colors=colors), file=stream)
        left_out.update(dict.fromkeys(part.left_out(width)))
    if left_out:
        names = ", ".join(filter(None, left_out))
        note = Text(f"({names} left out: {width} columns)", "dim", 1) if names else Text("")
        for line in note.lines(width) if names else ():
            print(painted(line, colors=colors), file=stream)
