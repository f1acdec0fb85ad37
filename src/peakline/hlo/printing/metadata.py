"""Where an instruction comes from, and what a program's values were before it was compiled, as XLA
writes it (``OpMetadataToString``, ``OriginalValue::ToString``,
``OriginalValueRecoveryTable::ToString``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakline.errors import InputError
from peakline.hlo.printing.quoting import braced, listed, quoted

if TYPE_CHECKING:
    from peakline.schema import (
        OpMetadata,
        OriginalArrayProto,
        OriginalValueProto,
        Payload,
        StackFrameIndexProto,
    )


def metadata_text(made: OpMetadata, payloads: Sequence[bytes] = ()) -> str:
    """``op_name="jit(f)/add" stack_frame_id=6``; ``payloads`` are those that the program shares."""
    parts = [
        f"{word}={quoted(text)}"
        for word, text in (
            ("op_type", made.op_type),
            ("op_name", made.op_name),
            ("source_file", made.source_file),
        )
        if text
    ]
    parts += [
        f"{word}={number}"
        for word, number in (
            ("source_line", made.source_line),
            ("source_end_line", made.source_end_line),
            ("source_column", made.source_column),
            ("source_end_column", made.source_end_column),
        )
        if number
    ]
    if made.profile_type:
        parts.append(f"profile_type={{{listed(made.profile_type)}}}")
    if made.deduplicated_name:
        parts.append(f"deduplicated_name={quoted(made.deduplicated_name)}")
    if made.scheduling_name:
        parts.append(f'scheduling_name="{made.scheduling_name}"')
    if made.stack_frame_id:
        parts.append(f"stack_frame_id={made.stack_frame_id}")
    if made.HasField("metadata_payload"):
        payload = payload_of(made.metadata_payload, payloads)
        if payload is not None:
            parts.append(f"metadata_payload={quoted(payload)}")
    return " ".join(parts)


def is_shown(made: OpMetadata) -> bool:
    """Whether there is something that XLA takes for a reason to write it."""
    return bool(
        made.op_type
        or made.op_name
        or made.source_file
        or made.scheduling_name
        or made.stack_frame_id
        or made.metadata_payload.WhichOneof("payload_source")
    )


def payload_of(payload: Payload, payloads: Sequence[bytes]) -> bytes | None:
    """What a payload says itself, or the shared one that it names; None where there is none."""
    chosen = payload.WhichOneof("payload_source")
    if chosen == "value":
        return payload.value
    if chosen == "id" and 0 <= payload.id < len(payloads):
        return payloads[payload.id]
    return None


def stack_frames(frames: StackFrameIndexProto) -> Iterator[str]:
    """The tables of files, functions, places and frames, each numbered from one."""
    yield "\n\nFileNames\n"
    for number, name in enumerate(frames.file_names, 1):
        yield f"{number} {quoted(name)}\n"
    yield "\nFunctionNames\n"
    for number, name in enumerate(frames.function_names, 1):
        yield f"{number} {quoted(name)}\n"
    yield "\nFileLocations\n"
    for number, at in enumerate(frames.file_locations, 1):
        yield (
            f"{number} {{file_name_id={at.file_name_id} function_name_id={at.function_name_id}"
            f" line={at.line} end_line={at.end_line} column={at.column}"
            f" end_column={at.end_column}}}\n"
        )
    yield "\nStackFrames\n"
    for number, frame in enumerate(frames.stack_frames, 1):
        # XLA adds one to the parent here, so that 1 stands for none.
        yield (
            f"{number} {{file_location_id={frame.file_location_id}"
            f" parent_frame_id={frame.parent_frame_id + 1}}}\n"
        )


_WIDEST = 1 << 12
"""Parts of a tuple up to which its gaps are written."""
_DEEPEST = 64
_MOST_PARTS = 1 << 16
"""Parts of a value, those of its tuples and their gaps, up to which it is written."""


class _Node:
    """A part of a value: an array, or a tuple of parts."""

    __slots__ = ("leaf", "parts")

    def __init__(self) -> None:
        self.leaf: str | None = None
        self.parts: dict[int, _Node] = {}


def origin_text(value: OriginalValueProto) -> str:
    """``({"a"}, {"b" {0}})``: the instruction that gave each array of a value, and the calls
    around it.
    """
    root = _Node()
    for element in () if value.is_synthetic_call else value.elements:
        index = element.shape_index
        if len(index) > _DEEPEST or any(not 0 <= place < _WIDEST for place in index):
            continue
        node = root
        for place in index:
            node = node.parts.setdefault(place, _Node())
        known = element.HasField("original_array")
        node.leaf = f"{{{array_text(element.original_array)}}}" if known else "{}"
    if _parts(root) > _MOST_PARTS + len(value.elements):
        raise InputError("what a value was before compilation has too many gaps to be written")
    text = _written(root)
    if value.HasField("call_hierarchy"):
        return f'{text},["{value.call_hierarchy}"]'
    return text


def array_text(array: OriginalArrayProto) -> str:
    """``"a" {0}``: an instruction, and the place in its result."""
    name = f'"{array.instruction_name}"'
    return f"{name} {braced(array.shape_index)}" if array.shape_index else name


def _parts(root: _Node) -> int:
    count, waiting = 0, [root]
    while waiting:
        parts = waiting.pop().parts
        count += max(parts, default=-1) + 1
        waiting += parts.values()
    return count


def _written(node: _Node) -> str:
    # As deep as an index is long.
    if node.leaf is not None and not node.parts:
        return node.leaf
    parts = (
        _written(node.parts[place]) if place in node.parts else "()"
        for place in range(max(node.parts, default=-1) + 1)
    )
    return f"({', '.join(parts)})"
