"""The lines of the user's program that instructions come from, as XProf shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.stack_index import StackIndex

_NOWHERE = ":-1:-1"
_MOST_DIGITS = 12
_MOST_CALLS, _LONGEST_FILE = 200, 1000
"""A text of calls names so many, and of a longer name of a file the begin."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, and the calls that led to it: ``FILE:LINE:COLUMN``, innermost first, a line each."""

    file: str
    line: int
    stack: str


class SourceLines:
    """The lines of one program, with its call stacks (``GetSourceInfo`` in
    ``xprof/utils/hlo_module_utils.cc``).
    """

    def __init__(self, index: StackIndex) -> None:
        self._index = index
        self._stacks: dict[int, str] = {}
        self._known: dict[tuple[str, int, int], SourceLine | None] = {}

    def line(self, file: str, line: int, frame: int) -> SourceLine | None:
        """The line that the metadata of an instruction names, else the innermost of the call stack
        ``frame`` (from 1 on); None where neither names a file.
        """
        key = file, line, frame
        if key not in self._known:
            stack = self._stack(frame)
            found = SourceLine(file, line, stack) if file else _innermost(stack)
            self._known[key] = found
        return self._known[key]

    def _stack(self, frame: int) -> str:
        if frame not in self._stacks:
            places = self._index.calls(frame)
            self._stacks[frame] = "\n".join(
                _NOWHERE
                if place is None
                else f"{place.file[:_LONGEST_FILE]}:{place.line}:{place.column}"
                for place in islice(places, _MOST_CALLS)
            )
        return self._stacks[frame]


def _innermost(stack: str) -> SourceLine | None:
    parts = stack.split("\n", 1)[0].split(":")
    if len(parts) == 1 or not parts[0]:
        return None
    is_number = parts[1].removeprefix("-").isdecimal() and len(parts[1]) < _MOST_DIGITS
    return SourceLine(parts[0], int(parts[1]) if is_number else 0, stack)
