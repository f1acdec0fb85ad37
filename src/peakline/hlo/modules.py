"""The compiled programs of a profile: what XLA says about each instruction.

A profile that was taken with its programs (``/host:metadata`` of an XSpace) holds each as an
HloProto (``xla/service/hlo.proto``). The bytes come from a file: what cannot be read is counted as
a warning, and never more than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.errors import NotFoundError, UsageError
from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.categories import category_of as category_by
from peakline.hlo.messages import ModuleParts, read_module
from peakline.suggest import there_is
from peakline.tables import Names, Profile
from peakline.tables.once import once
from peakline.tables.programs import INSTRUCTIONS
from peakline.wire import Buffer, as_buffer

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, HloProto, ShapeProto
    from peakline.tables.programs import Programs


_LISTED = 10


def program_that_needs_most(profile: Profile) -> int:
    """The number of the compiled program that needs most memory, the first of several; those whose
    need is not known last. Raises NotFoundError where there is none.
    """
    from peakline.hlo.memory import memory_of

    programs = profile.programs()
    if not programs:
        raise NotFoundError(f"{profile.path}: no compiled programs")
    known = [memory_of(profile, number) for number in range(len(programs))]
    needs = [one.peak_bytes if one.is_known else -1 for one in known]
    return needs.index(max(needs))


def choose_program(profile: Profile, module_name: str = "", program_id: str = "") -> int:
    """The number of the program called so: its name, its id, or the name with the id in
    parentheses; never a part of a name. Where none is named the only one is meant.

    Raises NotFoundError where there is none, naming those there are, and UsageError where several
    have the name, or there are several and none is named.
    """
    programs = profile.programs()
    every = range(len(programs)) if programs is not None else range(0)
    if programs is None or not every:
        raise NotFoundError(f"{profile.path}: no compiled programs")
    wanted = module_name or program_id
    if not wanted:
        if len(every) == 1:
            return 0
        known = _listed(programs)
        raise UsageError(f"{profile.path}: {len(every)} programs; say module_name: {known}")
    ids = {number: str(programs.program_id(number)) for number in every}
    names = {number: programs.name(number) for number in every}
    by_id = [number for number in every if ids[number] == (program_id or module_name)]
    result = [
        number
        for number in every
        if module_name in (names[number], programs.label(number))
        and (not program_id or number in by_id)
    ]
    result = result if module_name and result else by_id
    if not result:
        known = there_is(wanted, map(programs.label, every))
        raise NotFoundError(f"{profile.path}: no program {wanted!r}{known}").quoting(repr(wanted))
    if len(result) > 1:
        labels = ", ".join(programs.label(number) for number in result)
        raise UsageError(f"{profile.path}: {len(result)} programs {wanted!r}; name one: {labels}")
    return result[0]


def _listed(programs: Programs) -> str:
    """The first programs by name, and how many more there are."""
    count = len(programs)
    known = ", ".join(programs.label(number) for number in range(min(count, _LISTED)))
    return known + (f" and {count - _LISTED} more" if count > _LISTED else "")


_WANTED = frozenset(("name", "computation_id"))


class InstructionIndex:
    """Where the instructions of a program are; they are known by their rows in
    ``hlo_instructions``.
    """

    def __init__(self, programs: Programs, number: int) -> None:
        self._buffer = programs.data(number)
        self._spans = programs.parts(number, ())[INSTRUCTIONS].spans("@span")
        listed = programs.read(number, "hlo_instructions", _WANTED)
        self._names = listed.names("name")
        self._computation = listed.array("computation_id")
        hashes = (hash(self._names[row]) for row in range(listed.rows))
        result = np.fromiter(hashes, np.int64, listed.rows)
        # Of hashes alone: the names of a million are more than all else.
        self._order = np.argsort(result, kind="stable").astype(np.int32)
        self._hashes = result[self._order]
        links = programs.read(number, "hlo_operands")
        self._operand, self._is_control = links.array("operand_id"), links.array("is_control")
        rows = np.arange(listed.rows + 1)
        self._begin = np.searchsorted(links.array("instruction_id"), rows)

    def names(self) -> dict[str, None]:
        """All names, in the order of the instructions."""
        return dict.fromkeys(name or "" for name in self._names.to_list())

    def row(self, name: str) -> int | None:
        """The first instruction of a name."""
        low, high = (
            int(np.searchsorted(self._hashes, hash(name), side)) for side in ("left", "right")
        )
        rows = self._order[low:high].tolist()
        return next((row for row in rows if self.name(row) == name), None)

    def name(self, row: int) -> str:
        """What an instruction is called."""
        return self._names[row] or ""

    def computation(self, row: int) -> int:
        """The place of the computation that an instruction is of."""
        return int(self._computation[row])

    def inputs(self, row: int, *, control: bool) -> list[int]:
        """The operands of an instruction, or those that must have run before."""
        links = slice(self._begin[row], self._begin[row + 1])
        rows: list[int] = self._operand[links][self._is_control[links] == control].tolist()
        return rows

    def message(self, row: int) -> HloInstructionProto:
        """The message of an instruction.

        Raises DecodeError where it is damaged.
        """
        return schema.HloInstructionProto.FromString(self._spans.bytes(self._buffer, row))


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

    ``program_id`` is None where the profile does not say it, ``number`` that of the program in
    ``programs``. A program that cannot be read has no instructions, and is reported by ``lost`` as
    ``hlo_unreadable``, operands and calls that name nothing as ``hlo_reference``.
    """

    def __init__(self, programs: Programs, number: int, lost: Lost) -> None:
        (row,) = programs.read(number, "hlo_modules").to_pylist()
        self.name: str = row["name"]
        self.program_id: int | None = row["program_id"]
        self.number = number
        self._programs, self._lost = programs, lost

    @property
    def data(self) -> Buffer:
        """The serialized HloProto; of none where it is larger than messages can be."""
        data = self._programs.data(self.number)
        # Messages end at 2 GiB (protobuf.dev/programming-guides/encoding); zero begins none.
        return data if data.size < _MOST_BYTES else as_buffer(b"\0")

    def parts(self) -> ModuleParts | None:
        """The message, read anew; None where the bytes are none."""
        return read_module(self.data)

    @cached_property
    def index(self) -> InstructionIndex | None:
        """Where its instructions are; None where it cannot be read."""
        parts = self.parts()
        if parts is None:
            self._lost("hlo_unreadable", "compiled programs that are no HloProto, or of 2 GiB", 1)
            return None
        if unknown := _unknown(parts):
            detail = "operands and calls of compiled programs that name nothing"
            self._lost("hlo_reference", detail, unknown)
        return InstructionIndex(self._programs, self.number)

    @cached_property
    def instructions(self) -> Mapping[str, Instruction]:
        """All of them by name, those of called computations too; of two with one name the first."""
        return {} if self.index is None else _Instructions(self.index)

    def origins(self, opcode: str | None = None) -> set[tuple[str, str]]:
        """The framework's ops (name and type) for which instructions were made, of one opcode or
        of all.
        """
        if self.index is None:
            return set()
        wanted = {"opcode", "op_name", "op_type"}
        listed = self._programs.read(self.number, "hlo_instructions", wanted)
        if opcode is not None:
            listed = listed.take(listed.names("opcode").per_row(opcode.__eq__, np.bool_))
        columns = [listed.names(name) for name in ("op_name", "op_type")]
        codes = np.unique(np.stack([column.codes for column in columns]), axis=1)
        names, types = (
            Names(some, column.values).to_list()
            for some, column in zip(codes, columns, strict=True)
        )
        return {(name or "", kind or "") for name, kind in zip(names, types, strict=True)}


class _Instructions(Mapping[str, "Instruction"]):
    """The instructions of a program; one is made when it is wanted."""

    def __init__(self, index: InstructionIndex) -> None:
        self._index = index
        self._made: dict[str, Instruction] = {}

    def __getitem__(self, name: str) -> Instruction:
        if name not in self._made:
            row = self._index.row(name)
            if row is None:
                raise KeyError(name)
            self._made[name] = _instruction(self._index, row)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.names())

    def __len__(self) -> int:
        return len(self._index.names())


def parse_program(data: bytes) -> HloProto | None:
    """The message in ``data``; None where the bytes are no HloProto."""
    from google.protobuf.message import DecodeError

    try:
        return schema.HloProto.FromString(data)
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
    if programs is not None:
        for number in range(len(programs)):
            yield Module(programs, number, partial(profile.warn, once=True))


def _unknown(parts: ModuleParts) -> int:
    """How many operands and calls of a program name nothing."""
    called: Counter[int] = Counter()
    known: set[int] = set()
    unknown = 0
    for computation in parts.computations:
        known.add(computation.id)
        ids = {made.id for made in computation.instructions}
        for made in computation.instructions:
            unknown += sum(number not in ids for number in made.operand_ids)
            unknown += sum(number not in ids for number in made.control_predecessor_ids)
            called.update(made.called_computation_ids)
    return unknown + sum(count for number, count in called.items() if number not in known)


def _instruction(index: InstructionIndex, row: int) -> Instruction:
    made = index.message(row)
    rows = index.inputs(row, control=False)
    # The shapes of operands matter to the kind of one opcode, and of it only the first.
    first = rows[:1] if made.opcode == "bitcast-convert" else ()
    shapes = {one.id: one.shape for one in map(index.message, first)}
    meta = made.metadata
    source = f"{meta.source_file}:{meta.source_line}" if meta.source_file else ""
    controls = map(index.name, index.inputs(row, control=True))
    return Instruction(
        made.name, made.opcode, category_of(made, shapes), meta.op_name, meta.op_type, source,
        tuple(map(index.name, rows)), tuple(controls),
    )  # fmt: skip


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
