"""Compiled programs as XProf holds them: what XLA makes of the message when it reads it
(``HloModule::CreateFromProto`` in openxla/xla).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from peakline.errors import InputError
from peakline.hlo.modules import parse_program

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto, StackFrameIndexProto

_T = TypeVar("_T")


def as_read(data: bytes) -> HloModuleProto:
    """The program of a serialized HloProto after XLA read it.

    It takes over only the stack frames that instructions name, in the order in which they do, and
    not the groups of devices of messages of 2024 and 2025 that say them as a transposed range.
    Raises InputError where the bytes are none.
    """
    proto = parse_program(data)
    if proto is None:
        raise InputError("the program is no HloProto")
    module = proto.hlo_module
    frames = _Frames(module.stack_frame_index)
    for computation in module.computations:
        for made in computation.instructions:
            if made.HasField("metadata") and made.metadata.stack_frame_id:
                made.metadata.stack_frame_id = frames.taken(made.metadata.stack_frame_id)
            if made.collective_device_list.HasField("iota_replica_group_list"):
                made.collective_device_list.ClearField("iota_replica_group_list")
    if frames.made.stack_frames:
        module.stack_frame_index.CopyFrom(frames.made)
    else:
        module.ClearField("stack_frame_index")
    return module


class _Frames:
    """The stack frames that are taken over, numbered anew."""

    def __init__(self, given: StackFrameIndexProto) -> None:
        self._given = given
        self.made: StackFrameIndexProto = type(given)()
        self._numbers: dict[int, int] = {0: 0}
        self._known: dict[tuple[str, object], int] = {}

    def taken(self, frame: int) -> int:
        """The new number of a frame; those that called it are taken before it."""
        chain: list[int] = []
        while frame not in self._numbers and 0 < frame <= len(self._given.stack_frames):
            chain.append(frame)
            self._numbers[frame] = 0
            frame = self._given.stack_frames[frame - 1].parent_frame_id
        parent = self._numbers.get(frame, 0)
        for each in reversed(chain):
            parent = self._numbers[each] = self._add(each, parent)
        return parent

    def _add(self, frame: int, parent: int) -> int:
        """The number of a frame that ``parent`` called, whose call is not taken twice."""
        given, made = self._given, self.made
        at = _item(given.file_locations, given.stack_frames[frame - 1].file_location_id)
        file = _item(given.file_names, at.file_name_id)
        function = _item(given.function_names, at.function_name_id)
        file_id = self._number(made.file_names, "file", file)
        function_id = self._number(made.function_names, "function", function)
        lines = (at.line, at.column, at.end_line, at.end_column)
        place = type(at)(file_name_id=file_id, function_name_id=function_id)
        place.line, place.column, place.end_line, place.end_column = lines
        key = (file_id, function_id, *lines)
        location = self._number(made.file_locations, "place", key, place)
        called = type(given.stack_frames[frame - 1])(
            file_location_id=location, parent_frame_id=parent
        )
        return self._number(made.stack_frames, "frame", (location, parent), called)

    def _number(self, made: Any, kind: str, key: object, entry: object = None) -> int:
        """The number of an entry of a table, which is added where it is not there."""
        number = self._known.setdefault((kind, key), len(made) + 1)
        if number > len(made):
            made.append(key if entry is None else entry)
        return number


def _item(table: Sequence[_T], number: int) -> _T:
    """An entry by its number, which begins at one."""
    if not 0 < number <= len(table):
        raise InputError(
            f"the stack frames of the program name an entry {number} that is not there"
        )
    return table[number - 1]
