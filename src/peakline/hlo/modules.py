"""The compiled programs of a profile: what XLA says about each instruction.

A profile that was taken with its programs (``/host:metadata`` of an XSpace) holds each as an
HloProto (``xla/service/hlo.proto``). The bytes come from a file: what cannot be read is counted as
a warning, and never more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.categories import category_of as category_by
from peakline.tables import Profile
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, HloProto, ShapeProto

_MOST_BYTES = 2**31


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``op_name`` is what the framework calls it (empty where it says nothing).

    ``operands`` are names of instructions of the same computation, ``controls`` those that must
    have run before. ``source`` is a file and a line, or empty.
    """

    name: str
    opcode: str
    category: str
    op_name: str
    op_type: str
    source: str
    operands: tuple[str, ...]
    controls: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A compiled program. ``program_id`` is None where the profile does not say it.

    ``instructions`` holds all of them by name, those of called computations too; of two with one
    name the first counts. ``unknown`` counts operands and calls that name nothing.
    """

    name: str
    program_id: int | None
    instructions: dict[str, Instruction]
    unknown: int
    data: bytes


def parse_program(data: bytes) -> HloProto | None:
    """The message in ``data``; None where the bytes are no HloProto."""
    from google.protobuf.message import DecodeError

    from peakline.schema import HloProto

    try:
        return HloProto.FromString(data)
    except DecodeError:
        return None


@once
def modules_of(profile: Profile) -> tuple[Module, ...]:
    """The programs that the profile holds, in its order; read once.

    A program that cannot be read counts in the warning ``hlo_unreadable``, an operand or a call
    that names nothing in ``hlo_reference``. Raises InputError when the profile cannot be read.
    """
    return tuple(_read(profile))


def _read(profile: Profile) -> Iterator[Module]:
    programs = profile.programs()
    if programs is None:
        return
    for number in range(len(programs)):
        data = programs.data(number)
        # Messages end at 2 GiB (protobuf.dev/programming-guides/encoding).
        fits = data.size < _MOST_BYTES
        module = read_module(data.tobytes(), programs.label(number)) if fits else None
        if module is None:
            profile.warn(
                "hlo_unreadable", "compiled programs that are no HloProto, or of 2 GiB", once=True
            )
            continue
        if module.unknown:
            profile.warn(
                "hlo_reference",
                "operands and calls of compiled programs that name nothing",
                module.unknown,
                once=True,
            )
        yield module


def read_module(data: bytes, name: str = "") -> Module | None:
    """The program of a serialized HloProto; None where the bytes are none.

    ``name`` is what the profile calls it, with the program's id in parentheses.
    """
    proto = parse_program(data)
    if proto is None:
        return None
    module = proto.hlo_module
    known = {computation.id for computation in module.computations}
    instructions: dict[str, Instruction] = {}
    unknown = 0
    for computation in module.computations:
        names = {made.id: made.name for made in computation.instructions}
        shapes = {made.id: made.shape for made in computation.instructions}
        for made in computation.instructions:
            before = len(made.operand_ids) + len(made.control_predecessor_ids)
            operands = tuple(names[i] for i in made.operand_ids if i in names)
            controls = tuple(names[i] for i in made.control_predecessor_ids if i in names)
            unknown += before - len(operands) - len(controls)
            unknown += sum(number not in known for number in made.called_computation_ids)
            meta = made.metadata
            source = f"{meta.source_file}:{meta.source_line}" if meta.source_file else ""
            one = Instruction(
                made.name, made.opcode, category_of(made, shapes), meta.op_name, meta.op_type,
                source, operands, controls,
            )  # fmt: skip
            instructions.setdefault(made.name, one)
    return Module(module.name, _program_id(name), instructions, unknown, data)


def _program_id(name: str) -> int | None:
    found = re.search(r"\((\d{1,20})\)$", name)
    return int(found[1]) if found else None


def category_of(made: HloInstructionProto, shapes: Mapping[int, ShapeProto]) -> str:
    """The kind of work an instruction is, in XLA's words; ``shapes`` are those of its computation
    by the instruction's id.
    """
    sizes = made.window.dimensions
    operands = [shapes[number] for number in made.operand_ids if number in shapes]
    return category_by(
        made.opcode,
        made.fusion_kind,
        is_base_dilated=any(size.base_dilation > 1 for size in sizes),
        is_window_dilated=any(size.window_dilation > 1 for size in sizes),
        changes_rank=_changes_rank(made, operands),
    )


def is_elementwise(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> bool:
    """Whether each element of the result comes from one element of every operand."""
    return made.opcode in ELEMENTWISE and not _changes_rank(made, operands)


def _changes_rank(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> bool:
    """Whether bits are taken for elements of another size: these come from or make several, along
    a dimension more or less.
    """
    if made.opcode != "bitcast-convert" or not operands:
        return False
    return len(operands[0].dimensions) != len(made.shape.dimensions)
