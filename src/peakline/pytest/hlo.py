"""Compiled programs as XLA describes them: what running one takes beside what is live already."""

from __future__ import annotations

from dataclasses import dataclass

from peakline.schema import BufferAllocationProto, HloInstructionProto, HloProto, LogicalBufferProto

_DATA_TYPES = {
    1: 10, 2: 6, 3: 5, 4: 3, 5: 9, 6: 4, 7: 17, 8: 22, 9: 23, 10: 19, 11: 1, 12: 2, 15: 8, 16: 14,
    18: 18,
}  # fmt: skip
"""PrimitiveType of XLA to DataType of TensorFlow, where both have the type."""


@dataclass(frozen=True)
class Piece:
    """Part of a program's temporary memory: the largest buffer that lies there at any time.

    ``data_type`` is a number of TensorFlow's DataType, 0 where it is not known; ``shape`` is
    spelled ``[3,4]``, empty where it is not known.
    """

    op: str
    data_type: int
    shape: str
    bytes: int


@dataclass(frozen=True)
class Program:
    """A compiled program. ``held_bytes`` are its arguments and results, each once,
    ``result_bytes`` the results that have memory of their own; ``pieces`` together are the
    temporary memory that it takes while it runs.
    """

    name: str
    held_bytes: int
    result_bytes: int
    pieces: tuple[Piece, ...]


def read_program(data: bytes) -> Program | None:
    """The program of a serialized HloProto; None without an assignment of its buffers.

    Raises ``google.protobuf.message.DecodeError`` for other bytes.
    """
    proto = HloProto.FromString(data)
    if not proto.HasField("buffer_assignment"):
        return None
    module = proto.hlo_module
    instructions = {i.id: i for c in module.computations for i in c.instructions}
    buffers = {buffer.id: buffer for buffer in proto.buffer_assignment.logical_buffers}
    held = made = 0
    pieces: list[Piece] = []
    for allocation in proto.buffer_assignment.buffer_allocations:
        if allocation.is_thread_local or allocation.is_constant:
            continue
        if allocation.is_entry_computation_parameter or allocation.maybe_live_out:
            held += allocation.size
            made += 0 if allocation.is_entry_computation_parameter else allocation.size
        else:
            pieces += _pieces(allocation, buffers, instructions, module.name)
    return Program(module.name, held, made, tuple(pieces))


def _pieces(
    allocation: BufferAllocationProto,
    buffers: dict[int, LogicalBufferProto],
    instructions: dict[int, HloInstructionProto],
    module: str,
) -> list[Piece]:
    """The pieces of one allocation: the largest buffers first, each where none lies yet."""
    taken: list[tuple[int, int]] = []
    pieces = []
    for part in sorted(allocation.assigned, key=lambda part: (-part.size, part.offset)):
        start, end = part.offset, part.offset + part.size
        buffer = buffers.get(part.logical_buffer_id)
        if buffer is None or any(start < last and first < end for first, last in taken):
            continue
        taken.append((start, end))
        place = buffer.defined_at
        made_by = instructions.get(place.instruction_id)
        if made_by is None:
            pieces.append(Piece(module, 0, "", part.size))
            continue
        op = made_by.metadata.op_name or f"{module}/{made_by.name}"
        # A part of a tuple has a shape of its own, which is not looked for.
        whole = not place.shape_index and made_by.shape.element_type in _DATA_TYPES
        kind = _DATA_TYPES[made_by.shape.element_type] if whole else 0
        shape = f"[{','.join(map(str, made_by.shape.dimensions))}]" if whole else ""
        pieces.append(Piece(op, kind, shape, part.size))
    rest = allocation.size - sum(piece.bytes for piece in pieces)
    if rest > 0:
        pieces.append(Piece(f"{module} (other temporaries)", 0, "", rest))
    return pieces
