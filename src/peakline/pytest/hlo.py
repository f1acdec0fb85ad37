"""Compiled programs as XLA describes them: what running one takes beside what is live already.

Source of the field numbers: ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` in openxla/xla.
Only the fields that are needed are declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

__all__ = ["Piece", "Program", "read_program"]

_FIELDS = {
    "HloProto": "hlo_module:1:HloModuleProto buffer_assignment:3:BufferAssignmentProto",
    "HloModuleProto": "name:1:string computations:3:HloComputationProto*",
    "HloComputationProto": "instructions:2:HloInstructionProto*",
    "HloInstructionProto": "name:1:string shape:3:ShapeProto metadata:7:OpMetadata id:35:int64",
    "OpMetadata": "op_name:2:string",
    "ShapeProto": "element_type:2:int64 dimensions:3:int64*",
    "BufferAssignmentProto": "logical_buffers:1:LogicalBufferProto* "
    "buffer_allocations:3:BufferAllocationProto*",
    "LogicalBufferProto": "id:1:int64 size:2:int64 defined_at:3:Location",
    "Location": "shape_index:3:int64* instruction_id:4:int64",
    "BufferAllocationProto": "size:2:int64 is_thread_local:3:bool "
    "is_entry_computation_parameter:5:bool maybe_live_out:7:bool assigned:9:Assigned* "
    "is_tuple:11:bool is_constant:12:bool",
    "Assigned": "logical_buffer_id:1:int64 offset:2:int64 size:3:int64",
}
_DATA_TYPES = {
    1: 10, 2: 6, 3: 5, 4: 3, 5: 9, 6: 4, 7: 17, 8: 22, 9: 23, 10: 19, 11: 1, 12: 2, 15: 8, 16: 14,
    18: 18,
}  # fmt: skip
"""PrimitiveType of XLA to DataType of TensorFlow, where both have the type."""


@dataclass(frozen=True)
class Piece:
    """Part of a program's temporary memory: the largest buffer that lies there in its course.

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


@cache
def _message() -> Any:
    """The class of HloProto, in a pool of its own beside the frameworks' messages."""
    file = FileDescriptorProto(name="peakline/hlo.proto", package="xla", syntax="proto3")
    kinds = {"int64": 3, "bool": 8, "string": 9}
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            label, number, kind = field.split(":")
            message.field.add(
                name=label,
                number=int(number),
                label=FieldDescriptorProto.LABEL_REPEATED
                if kind.endswith("*")
                else FieldDescriptorProto.LABEL_OPTIONAL,
                type=FieldDescriptorProto.Type.ValueType(kinds.get(kind.rstrip("*"), 11)),
                type_name=None if kind.rstrip("*") in kinds else f".xla.{kind.rstrip('*')}",
            )
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("xla.HloProto"))


def read_program(data: bytes) -> Program | None:
    """The program of a serialized HloProto; None without an assignment of its buffers.

    Raises ``google.protobuf.message.DecodeError`` for other bytes.
    """
    proto = _message().FromString(data)
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
    allocation: Any, buffers: dict[int, Any], instructions: dict[int, Any], module: str
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
