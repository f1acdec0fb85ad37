"""The compiled programs of a profile: what XLA says about each instruction.

A profile that was taken with its programs (``/host:metadata`` of an XSpace) holds each as an
HloProto (``xla/service/hlo.proto``). The categories of instructions are those that XLA itself gives
them and that XProf shows (``HloInstruction::ToCategory`` in ``xla/hlo/ir``). The bytes come from a
file: what cannot be read is counted as a warning, and never more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from peakline.tables import Profile
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, HloProto, ShapeProto

_UNARY = (
    "abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert copy cosh cosine "
    "count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log "
    "log-plus-one logistic negate not popcnt real reduce-precision round-nearest-afz "
    "round-nearest-even rsqrt sign sine sinh sqrt tan tanh"
)
_MORE = (
    "add and atan2 compare complex divide maximum minimum mulhi multiply or power remainder "
    "shift-left shift-right-arithmetic shift-right-logical stochastic-convert subtract xor "
    "clamp select map rng"
)
ELEMENTWISE = frozenset(f"{_UNARY} {_MORE}".split())
"""Opcodes that compute each element of the result from one element of every operand; see
`is_elementwise`.
"""

_FORMATTING = frozenset(("transpose", "copy", "reshape", "dynamic-reshape"))
_FUSIONS = {"kLoop": "loop", "kInput": "input", "kOutput": "output", "kCustom": "custom"}
_DEEPEST = 16
"""Levels of tuples that the text of a shape goes down."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``op_name`` is what the framework calls it (empty where it says nothing).

    ``operands`` are names of instructions of the same computation, ``controls`` those that must
    have run before, ``calls`` names of computations. ``source`` is a file and a line, or empty.
    """

    name: str
    opcode: str
    category: str
    shape: str
    computation: str
    op_name: str
    op_type: str
    source: str
    operands: tuple[str, ...]
    controls: tuple[str, ...]
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A compiled program. ``program_id`` is None where the profile does not say it.

    ``instructions`` holds all of them by name, those of called computations too; of two with one
    name the first counts. ``computations`` are the names of the instructions of each, in an order
    in which they can run; ``entry`` is the computation that the program begins with. ``unknown``
    counts operands and calls that name nothing.
    """

    name: str
    program_id: int | None
    entry: str
    instructions: dict[str, Instruction]
    computations: dict[str, tuple[str, ...]]
    unknown: int
    data: bytes

    def roots(self) -> tuple[str, ...]:
        """The instructions of the entry computation."""
        return self.computations.get(self.entry, ())


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
    for name, data in profile.hlo_modules():
        module = read_module(data, name)
        if module is None:
            profile.warn("hlo_unreadable", "compiled programs that are no HloProto", once=True)
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
    called = {computation.id: computation.name for computation in module.computations}
    instructions: dict[str, Instruction] = {}
    computations: dict[str, tuple[str, ...]] = {}
    unknown = 0
    for computation in module.computations:
        names = {made.id: made.name for made in computation.instructions}
        shapes = {made.id: made.shape for made in computation.instructions}
        for made in computation.instructions:
            before = len(made.operand_ids) + len(made.control_predecessor_ids)
            operands = tuple(names[i] for i in made.operand_ids if i in names)
            controls = tuple(names[i] for i in made.control_predecessor_ids if i in names)
            calls = tuple(called[i] for i in made.called_computation_ids if i in called)
            unknown += before - len(operands) - len(controls)
            unknown += len(made.called_computation_ids) - len(calls)
            meta = made.metadata
            source = f"{meta.source_file}:{meta.source_line}" if meta.source_file else ""
            one = Instruction(
                made.name, made.opcode, category_of(made, shapes), shape_text(made.shape),
                computation.name, meta.op_name, meta.op_type, source, operands, controls, calls,
            )  # fmt: skip
            instructions.setdefault(made.name, one)
        computations.setdefault(computation.name, tuple(names.values()))
    entry = called.get(module.entry_computation_id, module.entry_computation_name)
    return Module(module.name, _program_id(name), entry, instructions, computations, unknown, data)


def _program_id(name: str) -> int | None:
    found = re.search(r"\((\d{1,20})\)$", name)
    return int(found[1]) if found else None


def category_of(made: HloInstructionProto, shapes: Mapping[int, ShapeProto]) -> str:
    """The kind of work an instruction is, in XLA's words; ``shapes`` are those of its computation
    by the instruction's id.
    """
    opcode = made.opcode
    if opcode == "fusion":
        kind = _FUSIONS.get(made.fusion_kind)
        return f"{kind} fusion" if kind else "fusion"
    if opcode == "convolution":
        sizes = made.window.dimensions
        base = " base-dilated" if any(size.base_dilation > 1 for size in sizes) else ""
        window = " window-dilated" if any(size.window_dilation > 1 for size in sizes) else ""
        return f"convolution{base}{window}"
    if opcode in _FORMATTING:
        return "data formatting"
    operands = [shapes[number] for number in made.operand_ids if number in shapes]
    if opcode == "constant" or is_elementwise(made, operands):
        return "non-fusion elementwise"
    return opcode


def is_elementwise(made: HloInstructionProto, operands: Sequence[ShapeProto]) -> bool:
    """Whether each element of the result comes from one element of every operand.

    Bits taken for elements of another size come from or make several, along a dimension more or
    less.
    """
    if made.opcode == "bitcast-convert" and operands:
        return len(operands[0].dimensions) == len(made.shape.dimensions)
    return made.opcode in ELEMENTWISE


def shape_text(shape: ShapeProto, depth: int = 0) -> str:
    """A shape as XLA writes it: ``f32[8,16]{1,0}``, tuples in parentheses."""
    kind = _type_names().get(shape.element_type, "")
    if kind == "tuple":
        if depth == _DEEPEST:
            return "(...)"
        return f"({', '.join(shape_text(part, depth + 1) for part in shape.tuple_shapes)})"
    if kind in ("opaque", "token"):
        return f"{kind}[]"
    sizes = ",".join(map(str, shape.dimensions))
    order = ",".join(map(str, shape.layout.minor_to_major))
    return f"{kind}[{sizes}]{{{order}}}" if order else f"{kind}[{sizes}]"


@cache
def _type_names() -> dict[int, str]:
    from peakline.schema import PrimitiveType

    names: dict[int, Any] = {number: name.lower() for name, number in PrimitiveType.items()}
    return names | {0: "", PrimitiveType.OPAQUE_TYPE: "opaque"}
