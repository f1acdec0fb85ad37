"""What the instructions of a compiled program cost: operations, and bytes read and written.

By the rules of XLA's own cost analysis (``xla/service/hlo_cost_analysis.cc``), which is also what
``jax.jit(f).lower(x).compile().cost_analysis()`` gives: an elementwise instruction does one
operation per element of its result, but exponentials, logarithms, roots and the like are counted
apart as transcendentals; a multiplication and an addition are two; a reduction applies its function
once for every element that disappears; a fusion does what its parts do and touches only its inputs
and outputs; a loop counts one turn, a conditional its dearest branch.

It knows the matrix products and convolutions of GPU libraries (``__cublas$gemm``,
``__cudnn$convForward``), which XLA's own rule does not. Another analysis inherits `Costing`.

Programs come from files: no number in them makes this fail or run for long. What cannot be costed
costs nothing and is counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from peakline.hlo import cost_rules as rules
from peakline.hlo.modules import parse_program
from peakline.hlo.program import UNCOUNTED, Made, Program, Sum

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto


class Cost(NamedTuple):
    """What one execution of an instruction costs.

    ``flops`` are operations on numbers of any type, without ``transcendentals``; ``bytes_accessed``
    is what it reads and writes, ``bytes_read`` and ``bytes_written`` what of it lies in the
    device's main memory. ``device_flops`` are the flops as XProf normalises them: half of them with
    inputs of 8 bits, a quarter with 4, since devices do those faster.
    """

    flops: float
    bytes_accessed: float
    transcendentals: float
    bytes_read: float
    bytes_written: float
    device_flops: float


_CALLS = frozenset(("call", "async-start", "while", "conditional"))
"""Opcodes that cost what they call."""
NOTHING = Cost(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ProgramCost:
    """The costs of a program: of each of its instructions by name, and of the entry computation.

    ``guessed`` counts instructions that were not as they should be and cost nothing here.
    """

    instructions: dict[str, Cost]
    total: Cost
    guessed: int = 0


class Costing:
    """The work on one program."""

    is_gpu: ClassVar[bool] = False
    """Whether fusions are looked at as XLA's analysis for GPUs does."""
    by_opcode: ClassVar[dict[str, rules.Rule]] = rules.RULES

    def __init__(self, module: HloModuleProto) -> None:
        self.module = module
        self.guessed = 0
        self.sums: dict[int, Sum] = {}
        """What the instructions of a computation cost together."""

    def answer(self) -> ProgramCost:
        """The costs of the program."""
        program = Program.of(self.module, is_gpu=self.is_gpu)
        self.guessed += program.unknown
        for computation in program.in_order():
            self.sums[computation] = self._compute(program, computation)
        counted = self.counted(program)
        costs: dict[str, Cost] = {}
        for computation, listed in program.computations.items():
            for made in listed:
                cost = self.cost(made) if computation in counted else NOTHING
                costs.setdefault(made.proto.name, cost)
        parts = [self.cost(made) for made in program.computations.get(program.entry, ())]
        total = Cost(*map(sum, zip(*parts, strict=True))) if parts else NOTHING
        return ProgramCost(costs, total, self.guessed)

    def _compute(self, program: Program, computation: int) -> Sum:
        total = Sum()
        for made in program.computations[computation]:
            rules.prepare(made)
            try:
                self.count(made, program, computation)
            except UNCOUNTED:
                made.flops = made.transcendentals = made.bytes = 0.0
                self.guessed += 1
            self.add_to(total, made, program)
        return total

    def add_to(self, total: Sum, made: Made, program: Program, times: int = 1) -> None:
        """Add an instruction to what those of its computation cost together, so many times."""
        try:
            if made.opcode in _CALLS:
                program.spend(made)
            total.add(made, times)
        except ValueError:
            self.guessed += times

    def count(self, made: Made, program: Program, computation: int) -> None:  # noqa: ARG002
        """Count an instruction of a computation by the rule of its opcode."""
        rule = self.by_opcode.get(made.opcode, rules.nothing_special)
        rule(made, partial(self._sum_of, made), program)

    def counted(self, program: Program) -> Collection[int]:
        """The computations whose instructions have costs."""
        return program.computations.keys()

    def _sum_of(self, made: Made, number: int) -> Sum:
        """What the called computation costs; an IndexError where there is none."""
        # One that calls itself, by way of others, is not there yet.
        return self.sums.get(made.calls[number], Sum())

    def cost(self, made: Made) -> Cost:
        """What an instruction costs that has been counted."""
        read, written = moved(made)
        numbers = made.flops, made.bytes, made.transcendentals, read, written
        device_flops = made.flops / made.faster()
        return Cost(*(float(max(number, 0)) for number in (*numbers, device_flops)))


def moved(made: Made) -> tuple[float, float]:
    """The bytes that an instruction reads from and writes to the device's main memory."""
    read = sum(size for place, size in made.read.items() if made.is_in_main(place))
    return read, sum(size for index, size in made.out.items() if made.writes_to_main(index))


def costs_of(data: bytes, costing: type[Costing] = Costing) -> dict[str, Cost]:
    """The cost of every instruction, by name, of a serialized HloProto.

    Empty where the bytes are none. Of two instructions with one name the first counts.
    """
    return cost_program(data, costing).instructions


def cost_program(data: bytes, costing: type[Costing] = Costing) -> ProgramCost:
    """As `costs_of`, with the sum over the entry computation."""
    proto = parse_program(data)
    return ProgramCost({}, NOTHING, 1) if proto is None else costing(proto.hlo_module).answer()
