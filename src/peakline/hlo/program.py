"""A compiled program as its costs are counted: instructions tied to operands, users and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from peakline.formats.hlo_proto.shapes import bits_of, bounded_product, type_names, width_of
from peakline.hlo.modules import is_elementwise

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, HloModuleProto, ShapeProto

MATRIX_PRODUCTS = frozenset(
    f"__cublas${name}" for name in ("gemm", "lt$matmul", "lt$matmul$f8", "lt$matmul$mx")
)
CONVOLUTIONS = frozenset(
    f"__cudnn$conv{name}"
    for name in ("Forward", "ForwardGraph", "BackwardInput", "BackwardFilter",
                 "BiasActivationForward")
)  # fmt: skip
"""What is called of the libraries of GPUs (``xla/service/gpu/cublas_cudnn.cc``)."""
UNCOUNTED = IndexError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError
"""What a rule raises of an instruction that is not as it should be; a RecursionError where JSON in
it is deep.
"""
_MOST = 2**62
_POINTER = 8
_DEEPEST = 64
_MOST_PLACES = 2**20
Index = tuple[int, ...]


class Made:
    """An instruction, and what has been found about it.

    ``read`` are bytes by operand and place in it, ``out`` bytes by place in the result, ``use``
    the share of an operand's elements that is used (1 where nothing is said).
    """

    __slots__ = (
        "bytes", "calls", "flops", "opcode", "operands", "out", "proto", "read", "shape", "share",
        "transcendentals", "use", "users",
    )  # fmt: skip

    def __init__(self, proto: HloInstructionProto) -> None:
        self.proto = proto
        self.opcode: str = proto.opcode
        self.shape: ShapeProto = proto.shape
        self.calls: list[int] = list(proto.called_computation_ids)
        self.operands: list[Made] = []
        self.users: list[Made] = []
        self.flops = self.bytes = self.transcendentals = 0.0
        self.share = 1.0
        """How often a fusion makes the whole of it."""
        self.read: dict[tuple[int, Index], float] = {}
        self.out: dict[Index, float] = {}
        self.use: dict[int, float] = {}

    def is_in_main(self, place: tuple[int, Index]) -> bool:
        """Whether what is read lies in main memory, as a whole array."""
        number, index = place
        return 0 <= number < len(self.operands) and _in_main(self.operands[number].shape, index)

    def writes_to_main(self, index: Index) -> bool:
        """Whether what is written lies there."""
        return _in_main(self.shape, index)

    def faster(self, operands: int | None = None) -> int:
        """How many operations a device does in the time of one with inputs of 16 bits.

        Only the first ``operands`` count, or all.
        """
        inputs = self.operands[:operands]
        widths = [bits_of(kind_of(operand.shape)) for operand in inputs]
        return {8: 2, 4: 4}.get(max(widths, default=0), 1)

    def group_sizes(self) -> list[int]:
        """The sizes of the groups of devices that work together, as far as the program lists them.

        Four ways to write them have been in use (``HloInstructionProto``).
        """
        proto = self.proto
        listed = proto.collective_device_list
        counts = listed.iota_replica_group_list, proto.iota_collective_device_list
        groups = [*proto.replica_groups, *listed.replica_groups]
        sizes = [len(group.replica_ids) for group in groups]
        sizes += [one.num_devices_per_group for one in counts if one.num_devices_per_group]
        mesh = proto.mesh_axes_replica_group_list
        if mesh.axes:
            axes = mesh.mesh.axes
            sizes.append(
                bounded_product(
                    axis.sub_axis_info.size
                    if axis.HasField("sub_axis_info")
                    else axes[axis.mesh_axis_index].size
                    for axis in mesh.axes
                )
            )
        return sizes


@dataclass
class Sum:
    """What several instructions cost together; ``read`` and ``out`` by the same places in all."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    read: dict[tuple[int, Index], float] = field(default_factory=dict)
    out: dict[Index, float] = field(default_factory=dict)

    def add(self, made: Made | Sum, times: int = 1) -> None:
        """One instruction more, or another sum, so many times."""
        self._merge(made, lambda one, other: one + times * other)

    def at_least(self, other: Sum) -> None:
        """Of each number the larger one."""
        self._merge(other, max)

    def _merge(self, made: Made | Sum, both: Callable[[float, float], float]) -> None:
        self.flops = both(self.flops, made.flops)
        self.transcendentals = both(self.transcendentals, made.transcendentals)
        self.bytes = both(self.bytes, made.bytes)
        for place, size in made.read.items():
            self.read[place] = both(self.read.get(place, 0.0), size)
        for index, size in made.out.items():
            self.out[index] = both(self.out.get(index, 0.0), size)


@dataclass
class Fused:
    """What fusions of one computation have in common: ``flops`` where they are counted part by
    part, bytes of ``constants``, and what is read and used of parameters. ``is_damaged`` where it
    is not as it should be.
    """

    flops: float | None = None
    constants: float = 0.0
    read: dict[tuple[int, Index], float] = field(default_factory=dict)
    read_bytes: float = 0.0
    use: dict[int, float] = field(default_factory=dict)
    is_damaged: bool = False


@dataclass
class Program:
    """The computations of a module by id. ``unknown`` counts operands that are not there."""

    computations: dict[int, list[Made]]
    roots: dict[int, Made]
    entry: int
    is_gpu: bool
    unknown: int = 0
    places: int = 0
    """How many places of called computations may still be added up for who calls them."""
    fused: dict[tuple[int, tuple[Index, ...]], Fused] = field(default_factory=dict)
    """By computation and the parts of the result that are written."""
    _order: list[int] = field(default_factory=list)
    _parameters: dict[int, dict[int, Made]] = field(default_factory=dict)
    _copied: dict[int, Made | None] = field(default_factory=dict)
    _is_elementwise: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, module: HloModuleProto, *, is_gpu: bool) -> Program:
        """Ties the instructions of every computation; an operand must stand before its user."""
        computations: dict[int, list[Made]] = {}
        roots: dict[int, Made] = {}
        unknown = 0
        for computation in module.computations:
            by_id: dict[int, Made] = {}
            listed: list[Made] = []
            for proto in computation.instructions:
                made = Made(proto)
                for number in proto.operand_ids:
                    operand = by_id.get(number)
                    if operand is None:
                        unknown += 1
                        continue
                    made.operands.append(operand)
                    operand.users.append(made)
                by_id[proto.id] = made
                listed.append(made)
            computations[computation.id] = listed
            if listed:
                roots[computation.id] = by_id.get(computation.root_id, listed[-1])
        entry = module.entry_computation_id
        if entry not in computations and module.computations:
            entry = module.computations[-1].id
        links = sum(len(made.operands) for listed in computations.values() for made in listed)
        return cls(computations, roots, entry, is_gpu, unknown, most_places(links))

    def in_order(self) -> list[int]:
        """The computations, each after those that it calls, as far as no call leads back."""
        if self._order:
            return self._order
        seen: set[int] = set()
        for first in self.computations:
            waiting: list[tuple[int, bool]] = [(first, False)]
            while waiting:
                number, is_done = waiting.pop()
                if is_done:
                    self._order.append(number)
                elif number not in seen and number in self.computations:
                    seen.add(number)
                    waiting.append((number, True))
                    for made in self.computations[number]:
                        waiting.extend((call, False) for call in made.calls)
        return self._order

    def spend(self, made: Made | Sum) -> None:
        """Raise ValueError where too many places have been added up: each call of a computation has
        all that its instructions read, so a small file could have very many.
        """
        count = len(made.read) + len(made.out)
        if count > self.places:
            raise ValueError(count)
        self.places -= count

    def parameters(self, computation: int) -> dict[int, Made]:
        """The parameters of a computation by number."""
        if computation not in self._parameters:
            self._parameters[computation] = {
                made.proto.parameter_number: made
                for made in self.computations[computation]
                if made.opcode == "parameter"
            }
        return self._parameters[computation]

    def copied_part(self, fusion: Made) -> Made | None:
        """The gather or scatter of a custom fusion, which is then taken for that alone."""
        if fusion.proto.fusion_kind != "kCustom" or not fusion.calls:
            return None
        called = fusion.calls[0]
        if called not in self._copied:
            parts = self.computations.get(called, ())
            result = (part for part in parts if part.opcode in ("gather", "scatter"))
            self._copied[called] = next(result, None)
        return self._copied[called]

    def is_elementwise(self, made: Made) -> bool:
        """Whether each element of the result comes from one element of every operand."""
        if made.opcode != "fusion" or not made.calls:
            return made.opcode == "fusion" or _plain(made)
        called = made.calls[0]
        if called not in self._is_elementwise:
            self._is_elementwise[called] = all(
                part.opcode in ("parameter", "constant") or _plain(part)
                for part in self.computations.get(called, [])
            )
        return self._is_elementwise[called]


def most_places(operands: int) -> int:
    """The `Program.places` of a program with so many operands in all."""
    return _MOST_PLACES + 2 * operands


def _plain(made: Made) -> bool:
    return is_elementwise(made.proto, [operand.shape for operand in made.operands])


def kind_of(shape: ShapeProto) -> str:
    """The element type, such as ``f32``, or ``tuple``, ``token``, ``opaque``."""
    return type_names().get(shape.element_type, "")


def single(number: float) -> float:
    """A number as XLA keeps it: in 32 bits."""
    return float(np.float32(number))


def elements(shape: ShapeProto) -> int:
    """Elements of an array, bounded; of a tuple those of its arrays together."""
    if kind_of(shape) == "tuple":
        return min(sum(elements(part) for _, part in leaves(shape)), _MOST)
    count = 1
    for size in shape.dimensions:
        count = min(count * max(size, 0), _MOST)
    return count


def leaves(shape: ShapeProto) -> list[tuple[Index, ShapeProto]]:
    """The parts of a shape that are no tuples, with their places; an array is its own one."""
    result: list[tuple[Index, ShapeProto]] = []
    waiting: list[tuple[Index, ShapeProto]] = [((), shape)]
    while waiting:
        index, part = waiting.pop()
        if kind_of(part) != "tuple":
            result.append((index, part))
        elif len(index) < _DEEPEST:
            inner = enumerate(part.tuple_shapes)
            waiting.extend(((*index, number), below) for number, below in inner)
    return sorted(result, key=lambda leaf: leaf[0])


def size_of(shape: ShapeProto) -> int:
    """Bytes of an array; of a tuple those of its table of pointers."""
    kind = kind_of(shape)
    if kind == "tuple":
        return _POINTER * len(shape.tuple_shapes)
    if kind in ("token", ""):
        return 0
    if kind in ("opaque", "buffer"):
        return _POINTER
    packed = shape.layout.element_size_in_bits
    bits = packed if 0 < packed < 128 else 8 * width_of(kind)
    return min(-(-elements(shape) * bits // 8), _MOST)


def whole_size_of(shape: ShapeProto) -> int:
    """Bytes of an array, or of all arrays in a tuple."""
    return sum(size_of(part) for _, part in leaves(shape))


def part_of(shape: ShapeProto, index: Index) -> ShapeProto:
    """The part of a tuple at a place. Raises IndexError where there is none."""
    for number in index:
        shape = shape.tuple_shapes[number]
    return shape


def _in_main(shape: ShapeProto, index: Index) -> bool:
    try:
        part = part_of(shape, index)
    except IndexError:
        return False
    return kind_of(part) != "tuple" and part.layout.memory_space == 0
