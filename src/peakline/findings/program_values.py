"""What the values of compiled programs are, for findings where no allocator recorded anything.

Only the program says what it holds: by instruction, op and source line. Findings are of the same
kinds as those of allocators (`peakline.findings.kinds`); their allocator is the device.

XLA makes instructions without metadata: copies before what is computed in place, broadcasts of
zeros that a scatter begins with. Their op is that of what reads them (`with_readers`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from peakline.findings.finding import Finding
from peakline.findings.program_memory import DeviceNeed, device_needs
from peakline.hlo.uses import Uses
from peakline.memory.peak.temporaries import (
    ATTENTION,
    BLOWN_UP,
    BROADCAST,
    ONE_HOT,
    PATCHES,
    PER_EXAMPLE,
    SPARSE,
)
from peakline.tables import Profile
from peakline.text import source_text
from peakline.timing.programs.answer import LiveBuffer, ProgramAnswer

_MOST = 400
"""So many of the largest values of a program are looked through."""
_SHAPE = re.compile(r"(?P<type>\w+)\[(?P<dims>[\d,]*)\]")
_ONE_HOT = re.compile(r"(?i)one_?hot")
_PATCHES = re.compile(r"(?i)patches|im2col|unfold")
_SOFTMAX = re.compile(r"(?i)softmax|attention|attend|/exp$|reduce_max")
_PRODUCT = re.compile(r"(?:dot_general|conv_general_dilated|dot|convolution)$")
_JOIN = re.compile(r"(?:^|/)concatenate$")
_PAIRS, _LARGER = 2, 2.0
"""A square matrix need not be so much larger than a weight."""
_IMAGES = 4
"""Images are of so many dimensions or more: with those of a batch and of colours."""
_RESIDUAL = re.compile(r"jvp\(.*/while$")
_SCATTER = re.compile(r"scatter(?:(?!scatter)[\w-])*$")
ROWS = 8
_STEPS = 4
"""At most so many instructions lie between a value and the op that it is for."""


@dataclass(frozen=True, eq=False)
class ProgramOfDevices:
    """A program that needs most of the devices of ``needs``, which say the same of its values."""

    profile: Profile
    needs: tuple[DeviceNeed, ...]

    @property
    def need(self) -> DeviceNeed:
        """What the first of the devices needs."""
        return self.needs[0]

    @cached_property
    def live(self) -> Sequence[LiveBuffer]:
        """The largest values at its peak, most bytes first."""
        return self.need.program.largest(_MOST)


def programs_of(profile: Profile) -> tuple[ProgramOfDevices, ...]:
    """The programs that need most of each device. Raises InputError when the profile cannot be
    read.
    """
    needs: dict[int, list[DeviceNeed]] = {}
    for need in device_needs(profile):
        needs.setdefault(need.program.number, []).append(need)
    return tuple(ProgramOfDevices(profile, tuple(some)) for some in needs.values())


def each_program(
    programs: Iterable[ProgramOfDevices], find: Callable[[ProgramOfDevices], Iterable[Finding]]
) -> Iterator[Finding]:
    """What ``find`` says of the programs, once of those with one label."""
    labels: set[str] = set()
    for one in programs:
        if one.need.program.label not in labels:
            for finding in find(one):
                labels.add(one.need.program.label)
                yield finding


@dataclass(frozen=True)
class Form:
    """Values at a program's peak of one shape: ``bytes`` together, ``first`` the largest."""

    shape: str
    bytes: int
    values: tuple[LiveBuffer, ...]

    @property
    def first(self) -> LiveBuffer:
        """The largest of them."""
        return self.values[0]

    @property
    def sides(self) -> tuple[int, ...]:
        """The dimensions."""
        result = _SHAPE.match(self.shape)
        return tuple(int(one) for one in (result["dims"] if result else "").split(",") if one)


def forms_of(live: Sequence[LiveBuffer], kind: str) -> list[Form]:
    """The values of a kind (temporary, parameter, output) by shape, most bytes first."""
    groups: dict[str, list[LiveBuffer]] = {}
    for one in live:
        if one.kind == kind:
            groups.setdefault(one.shape, []).append(one)
    forms = [
        Form(shape, sum(one.bytes for one in values), tuple(values))
        for shape, values in groups.items()
    ]
    return sorted(forms, key=lambda form: -form.bytes)


def what_is(form: Form, live: Sequence[LiveBuffer]) -> str:
    """What the values of a form are, empty for what a model needs."""
    names = [one.op_name for one in form.values]
    sides = form.sides
    if all(map(is_residual, form.values)):
        return ""  # stacked over the turns of a loop, square or not
    if any(_ONE_HOT.search(name) for name in names):
        return ONE_HOT
    if any(_PATCHES.search(name) for name in names):
        return PATCHES
    weights = {one.sides for one in forms_of(live, "parameter") if len(one.sides) >= 2}
    if len(sides) >= 3 and sides[1:] in weights:
        # Piece by piece in a loop is how it should be.
        return PER_EXAMPLE if all(map(_is_apart, names)) else ""
    is_square = len(sides) >= 3 and sides[-1] == sides[-2]
    if is_square and any(_SOFTMAX.search(name) for name in names):
        return ATTENTION
    shapes = {one.shape for one in form.values}
    others = [one.bytes for one in live if one.shape not in shapes]
    is_blown_up = form.first.bytes >= BLOWN_UP * max(others, default=0)
    # All pairs of the outputs of a layer: a Hessian, a Gram matrix.
    is_blown_up |= (
        len(sides) == _PAIRS
        and sides[0] == sides[1]
        and form.first.bytes >= _LARGER * max(others, default=0)
    )
    # What has the shape of an argument is no larger than what it was made of.
    is_blown_up &= all(one.shape != form.shape for one in live if one.kind == "parameter")
    is_product = any(_PRODUCT.search(name.rpartition("/")[2]) for name in names)
    if is_blown_up and is_square:
        return ATTENTION
    if is_blown_up and sides[-2:-1] == sides[-1:] and any(map(_SCATTER.search, names)):
        return SPARSE
    # What is joined to so much more than all else was there several times over; of waves and texts
    # a few neighbours are a model's input.
    if is_blown_up and len(sides) >= _IMAGES and any(_JOIN.search(name) for name in names):
        return PATCHES
    return BROADCAST if is_blown_up and not is_product and all(names) else ""


def is_residual(value: LiveBuffer) -> bool:
    """Whether a loop of a forward pass (``jvp(...)/while``) made it for the backward pass."""
    is_forward = "transpose(" not in value.op_name and _RESIDUAL.search(value.op_name)
    return bool(value.kind == "temporary" and is_forward)


def alike(forms: Sequence[Form]) -> list[Form]:
    """Forms of one type with as many numbers together: one is the other, reshaped or transposed."""
    groups: dict[tuple[str, int], list[Form]] = {}
    for form in forms:
        kind = form.shape.partition("[")[0]
        groups.setdefault((kind, math.prod(form.sides)), []).append(form)
    result = [
        Form(
            group[0].shape,
            sum(form.bytes for form in group),
            tuple(one for form in group for one in form.values),
        )
        for group in groups.values()
    ]
    return sorted(result, key=lambda form: -form.bytes)


def together(form: Form, what: str, live: Sequence[LiveBuffer]) -> tuple[LiveBuffer, ...]:
    """The values that go with those of a form: with one weight's gradients of each example those of
    all others.
    """
    if what != PER_EXAMPLE:
        return form.values
    shapes = {one.shape for one in form.values}
    more = (
        one
        for other in forms_of(live, "temporary")
        if other.sides[:1] == form.sides[:1] and other.shape not in shapes
        if what_is(other, live) == PER_EXAMPLE
        for one in other.values
    )
    return (*form.values, *more)


def _is_apart(name: str) -> bool:
    """Whether an op is one of each example: made by ``vmap``, and not piece by piece in a loop."""
    return "vmap(" in name and "while/body" not in name


def evidence_of(need: DeviceNeed, value: LiveBuffer) -> dict[str, object]:
    """Which value of which program it is, as findings say it."""
    return {
        "allocator": need.device or need.program.name,
        "op": value.op_name or value.instruction,
        "region_type": value.kind,
        "data_type": value.shape.partition("[")[0],
        "shape": value.shape,
        "file": value.source_file,
        "line": value.source_line,
        "peak_bytes": need.bytes,
        "program": need.program.label,
    }


def rows_of(values: Sequence[LiveBuffer]) -> tuple[dict[str, object], ...]:
    """A row for each of the first values."""
    return tuple(
        {
            "op": one.op_name or one.instruction,
            "region_type": one.kind,
            "shape": one.shape,
            "bytes": one.bytes,
            "file": one.source_file,
            "line": one.source_line,
        }
        for one in values[:ROWS]
    )


def where_made(value: LiveBuffer) -> str:
    """``, made in train.py:12``, empty where that is not known."""
    source = source_text(value.source_file, value.source_line)
    return f", made in {source}" if source else ""


def with_readers(
    profile: Profile, program: ProgramAnswer, values: Sequence[LiveBuffer]
) -> tuple[LiveBuffer, ...]:
    """``values`` of a program with the op and line of the first instruction with an op that reads
    them, if need be through others; unchanged where none does.
    """
    programs = profile.programs()
    if programs is None:
        return tuple(values)
    uses = Uses(programs, program.memory)
    names = uses.instructions.names("name").to_list()
    places = {name: row for row, name in enumerate(names)}
    return tuple(
        _with_reader(value, uses, places.get(value.instruction.partition("{")[0]))
        for value in values
    )


def _with_reader(value: LiveBuffer, uses: Uses, row: int | None) -> LiveBuffer:
    reader = None if row is None else _reader(uses, row)
    if reader is None:
        return value
    line = uses.instructions.array("source_line")[reader]
    return replace(
        value,
        op_name=uses.instructions.names("op_name")[reader] or "",
        source_file=uses.instructions.names("source_file")[reader] or "",
        source_line=int(line) if uses.instructions.is_valid("source_line")[reader] else None,
    )


def _reader(uses: Uses, row: int) -> int | None:
    has_op = uses.instructions.names("op_name").codes >= 0
    frontier = {row}
    for _ in range(_STEPS):
        frontier = {user for one in frontier for user in uses.users(one)} - frontier
        named = [user for user in frontier if has_op[user]]
        if named:
            return min(named)
    return None
