"""The compiled programs of a profile: what XLA says about each instruction.

A profile that was taken with its programs (``/host:metadata`` of an XSpace) holds each as an
HloProto (``xla/service/hlo.proto``). The bytes come from a file: what cannot be read is counted as
a warning, and never more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.categories import category_of as category_by
from peakline.tables import Profile
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, HloModuleProto, HloProto, ShapeProto

_MOST_BYTES = 2**31
Lost = Callable[[str, str, int], object]
"""Takes a kind of warning, its detail and how many."""


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


class Module:
    """A compiled program, read when something of it is wanted: of a profile's programs few run.

    ``program_id`` is None where the profile does not say it. A program that cannot be read has no
    instructions, and is reported by ``lost`` as ``hlo_unreadable``, operands and calls that name
    nothing as ``hlo_reference``.
    """

    def __init__(
        self, name: str, program_id: int | None, load: Callable[[], bytes], lost: Lost
    ) -> None:
        self.name, self.program_id = name, program_id
        self._load, self._lost = load, lost

    @property
    def data(self) -> bytes:
        """The serialized HloProto."""
        return self._load()

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """All of them by name, those of called computations too; of two with one name the first."""
        proto = parse_program(self.data)
        if proto is None:
            self._lost("hlo_unreadable", "compiled programs that are no HloProto, or of 2 GiB", 1)
            return {}
        found, unknown = _instructions(proto.hlo_module)
        if unknown:
            detail = "operands and calls of compiled programs that name nothing"
            self._lost("hlo_reference", detail, unknown)
        return found


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
    """The programs that the profile holds, in its order.

    Raises InputError when the profile cannot be read.
    """
    return tuple(_modules(profile))


def _modules(profile: Profile) -> Iterator[Module]:
    programs = profile.programs()
    if programs is None:
        return

    def load(number: int) -> bytes:
        data = programs.data(number)
        # Messages end at 2 GiB (protobuf.dev/programming-guides/encoding); zero begins none.
        return data.tobytes() if data.size < _MOST_BYTES else b"\0"

    for number in range(len(programs)):
        (row,) = programs.read(number, "hlo_modules").to_pylist()
        lost = partial(profile.warn, once=True)
        yield Module(row["name"], row["program_id"], partial(load, number), lost)


def _instructions(module: HloModuleProto) -> tuple[dict[str, Instruction], int]:
    """The instructions of a program by name, and how many operands and calls name nothing."""
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
    return instructions, unknown


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
