"""Compiled programs as XProf holds them: what XLA makes of the message when it reads it
(``HloModule::CreateFromProto`` in openxla/xla).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from peakline.errors import InputError
from peakline.hlo.messages import ModuleParts, read_module
from peakline.hlo.printing.outline import Outline, local
from peakline.xprof.rules.programs import is_sound

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, OpSharding, StackFrameIndexProto
    from peakline.wire import Buffer


def is_schedule_sound(parts: ModuleParts) -> bool:
    """Whether every computation that is no fusion's has its instructions in an order, each once and
    behind its operands; of each thread all or none (``HloSchedule::Verify`` in openxla/xla).
    """
    if not parts.head.HasField("schedule"):
        return True
    sequences = parts.head.schedule.sequences
    fused: set[int] = set()
    for one in parts.computations:
        if one.is_fusion_computation:
            fused.add(one.id)
        for made in one.instructions:
            if made.opcode == "fusion":
                fused.update(made.called_computation_ids)
    outline = Outline(parts.computations)
    threads = outline.threads()
    scheduled = {threads.of(number) for number in sequences}
    wanted = {
        number: place
        for number, place in outline.places.items()
        if number not in fused and threads.of(number) in scheduled
    }
    return set(sequences) == wanted.keys() and all(
        _is_sound(parts.computations[place], sequences[number].instruction_ids)
        for number, place in wanted.items()
    )


def _is_sound(one: HloComputationProto, order: Sequence[int]) -> bool:
    places = {local(number): place for place, number in enumerate(order)}
    return len(places) == len(order) == len(one.instructions) and all(
        places.get(local(number), len(order)) < places.get(local(made.id), -1)
        for made in one.instructions
        for number in (*made.operand_ids, *made.control_predecessor_ids)
    )


NOT_TAKEN = "xla.CollectiveDeviceListProto.iota_replica_group_list"
"""A field that XProf's messages lack: the groups of devices that messages of 2024 and 2025 say as a
transposed range.
"""
_NONE = -1
"""The number of a frame that is not taken."""


def as_read(data: bytes | Buffer) -> ModuleParts:
    """The program of a serialized HloProto as XLA has it after reading it.

    It takes over only the stack frames that instructions name, in the order in which they do.
    Raises InputError where the bytes are none, or XLA refuses the program.
    """
    parts = read_module(data)
    if parts is None:
        raise InputError("the program is no HloProto")
    if not is_sound(parts) or not is_schedule_sound(parts):
        raise InputError("XLA does not take this program; without compatible=xprof it is shown")
    waiting = [parts.head]
    while waiting:
        entries = waiting.pop().original_value_recovery_table.entries
        inner = [one.recovery_module for one in entries if one.HasField("recovery_module")]
        waiting.extend(inner)
        for module in inner:
            _read(ModuleParts.of(module))
    return _read(parts)


def _read(parts: ModuleParts) -> ModuleParts:
    """A program as XLA has it, but for those within it by which values are made again."""
    module = parts.head
    frames = _Frames(module.stack_frame_index)
    parts = parts.changed(partial(_change, frames))
    # Frames are numbered as computations come: all of them, before the first is shown.
    deque(parts.computations, 0)
    if frames.made.stack_frames:
        module.stack_frame_index.CopyFrom(frames.made)
    else:
        module.ClearField("stack_frame_index")
    return parts


def _change(frames: _Frames, computation: HloComputationProto) -> None:
    for made in computation.instructions:
        if made.collective_device_list.HasField("iota_replica_group_list"):
            made.collective_device_list.ClearField("iota_replica_group_list")
        if made.HasField("metadata") and made.metadata.stack_frame_id:
            made.metadata.stack_frame_id = frames.taken(made.metadata.stack_frame_id)
        if made.HasField("sharding"):
            _say_reduction(made.sharding)


def _say_reduction(whole: OpSharding) -> None:
    """That what is not reduced yet will be by adding, which older messages left out."""
    waiting = [whole]
    while waiting:
        sharding = waiting.pop()
        waiting.extend(sharding.tuple_shardings)
        is_tiled = sharding.type == sharding.OTHER
        kinds = sharding.last_tile_dims if is_tiled else (sharding.type,)
        if sharding.UNREDUCED in kinds and not sharding.HasField("named_sharding"):
            sharding.metadata.add(op_type="sdy::reduction_op", op_name="SUM")


class _Frames:
    """The stack frames that are taken over, numbered anew."""

    def __init__(self, given: StackFrameIndexProto) -> None:
        self._given = given
        self.made: StackFrameIndexProto = type(given)()
        self._numbers: dict[int, int] = {0: 0}
        self._known: dict[tuple[str, object], int] = {}

    def taken(self, frame: int) -> int:
        """The new number of a frame, after those that called it; 0 where one of them is not there,
        lies at no place, or called itself.
        """
        chain: dict[int, None] = {}
        while frame not in self._numbers:
            if frame in chain or not self._is_sound(frame):
                self._numbers |= dict.fromkeys([*chain, frame], _NONE)
                break
            chain[frame] = None
            frame = self._given.stack_frames[frame - 1].parent_frame_id
        parent = self._numbers[frame]
        for each in reversed(chain):
            if parent == _NONE:
                self._numbers[each] = _NONE
            else:
                parent = self._numbers[each] = self._add(each, parent)
        return max(parent, 0)

    def _is_sound(self, frame: int) -> bool:
        given = self._given
        if not 0 < frame <= len(given.stack_frames):
            return False
        place = given.stack_frames[frame - 1].file_location_id
        if not 0 < place <= len(given.file_locations):
            return False
        at = given.file_locations[place - 1]
        return 0 < at.file_name_id <= len(given.file_names) and 0 < at.function_name_id <= len(
            given.function_names
        )

    def _add(self, frame: int, parent: int) -> int:
        """The number of a frame that ``parent`` called, whose call is not taken twice."""
        given, made = self._given, self.made
        at = given.file_locations[given.stack_frames[frame - 1].file_location_id - 1]
        file = given.file_names[at.file_name_id - 1]
        function = given.function_names[at.function_name_id - 1]
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
