"""The lines of the user's program that instructions come from, as XProf shows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from peakline import schema
from peakline.wire import Buffer, Decoded, Plan, decode

_INDEX = "hlo_module.stack_frame_index"
_PLACES = ("file_name_id", "line", "column")
_FRAMES = ("file_location_id", "parent_frame_id")
_MOST_FRAMES = 1000
_UNKNOWN = -1
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, and the calls that led to it: ``FILE:LINE:COLUMN``, innermost first, a line each."""

    file: str
    line: int
    stack: str


class SourceLines:
    """The lines of one serialized HloProto (``GetSourceInfo`` in
    ``xprof/utils/hlo_module_utils.cc``).
    """

    def __init__(self, data: Buffer) -> None:
        self._data = data
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
            places, frames = self._index
            texts: list[str] = []
            number = frame
            while 0 < number <= len(frames) and len(texts) < _MOST_FRAMES:
                place, number = frames[number - 1]
                known = 0 < place <= len(places)
                texts.append(places[place - 1] if known else f":{_UNKNOWN}:{_UNKNOWN}")
            self._stacks[frame] = "\n".join(texts)
        return self._stacks[frame]

    @cached_property
    def _index(self) -> tuple[list[str], list[tuple[int, ...]]]:
        """The text of every place, and place and caller of every frame."""
        decoded = decode(self._data, _plan())
        files = ["", *decoded[f"{_INDEX}.file_names"].spans("value").texts(self._data)]
        places = [
            f"{files[file] if 0 < file < len(files) else ''}:{line}:{column}"
            for file, line, column in _rows(decoded, "file_locations", _PLACES)
        ]
        return places, _rows(decoded, "stack_frames", _FRAMES)


def _innermost(stack: str) -> SourceLine | None:
    parts = stack.split("\n", 1)[0].split(":")
    if len(parts) == 1 or not parts[0]:
        return None
    is_number = parts[1].removeprefix("-").isdecimal() and len(parts[1]) < _MOST_DIGITS
    return SourceLine(parts[0], int(parts[1]) if is_number else 0, stack)


@cache
def _plan() -> Plan:
    return Plan(
        schema.shape("xla.HloProto"),
        (
            f"{_INDEX}.file_names",
            *(f"{_INDEX}.file_locations.{name}" for name in _PLACES),
            *(f"{_INDEX}.stack_frames.{name}" for name in _FRAMES),
        ),
    )


def _rows(decoded: Decoded, table: str, columns: tuple[str, ...]) -> list[tuple[int, ...]]:
    found = decoded[f"{_INDEX}.{table}"]
    return list(zip(*(found.array(name).tolist() for name in columns), strict=True))
