"""Call stacks of a module (``StackFrameIndexProto`` in ``xla/service/hlo.proto``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from peakline import schema
from peakline.arrays import Int64Array
from peakline.formats.common.callers import Frame
from peakline.wire import Buffer, Decoded, Plan, decode

_INDEX = "hlo_module.stack_frame_index"
_LOCATION = "file_name_id function_name_id line column"
_FRAME = "file_location_id parent_frame_id"
STACK_PATHS = (
    f"{_INDEX}.file_names",
    f"{_INDEX}.function_names",
    *(f"{_INDEX}.file_locations.{name}" for name in _LOCATION.split()),
    *(f"{_INDEX}.stack_frames.{name}" for name in _FRAME.split()),
)
_MOST_FRAMES = 1000


class Place(NamedTuple):
    """A place of the user's program; names are empty where the module lacks them."""

    function: str
    file: str
    line: int
    column: int


class StackIndex:
    """The call stacks of a module."""

    __retained__ = "_places _frames _arrays"

    def __init__(self, decoded: Decoded) -> None:
        files, functions = (
            dict(enumerate(decoded[f"{_INDEX}.{name}"].spans("value").texts(decoded.buffer), 1))
            for name in ("file_names", "function_names")
        )
        self._places = [
            Place(functions.get(function, ""), files.get(file, ""), line, column)
            for file, function, line, column in _rows(decoded, "file_locations", _LOCATION)
        ]
        self._frames = _rows(decoded, "stack_frames", _FRAME)
        self._arrays = np.array(self._frames, np.int64).reshape(-1, 2)

    @classmethod
    def of(cls, program: Buffer) -> StackIndex:
        """Those of a serialized HloProto."""
        return cls(decode(program, _plan()))

    def __len__(self) -> int:
        return len(self._frames)

    def calls(self, frame: int) -> Iterator[Place | None]:
        """The places of a frame, numbered from 1 on, and of those that called it, innermost first;
        None for one that the module lacks.
        """
        for _ in range(min(_MOST_FRAMES, len(self._frames))):
            if not 0 < frame <= len(self._frames):
                return
            place, frame = self._frames[frame - 1]
            yield self._places[place - 1] if 0 < place <= len(self._places) else None

    def levels(self, stacks: Int64Array) -> Iterator[tuple[Int64Array, Int64Array]]:
        """The frames of ``stacks``, from 0 on: first the innermost of all, then who called these.

        Of each level which of the stacks have it, by place, and the number of its place.
        """
        which, frame = np.arange(stacks.size), stacks + 1
        for _ in range(min(_MOST_FRAMES, len(self._frames))):
            inside = (frame > 0) & (frame <= len(self._frames))
            which, frame = which[inside], frame[inside]
            if not which.size:
                return
            place, frame = self._arrays[frame - 1].T
            known = (place > 0) & (place <= len(self._places))
            yield which[known], place[known] - 1

    @cached_property
    def places(self) -> list[Frame]:
        """All places by number."""
        return [place[:3] for place in self._places]


@cache
def _plan() -> Plan:
    return Plan(schema.shape("xla.HloProto"), STACK_PATHS)


def _rows(decoded: Decoded, table: str, columns: str) -> list[tuple[int, ...]]:
    result = decoded[f"{_INDEX}.{table}"]
    return list(zip(*(result.array(name).tolist() for name in columns.split()), strict=True))
