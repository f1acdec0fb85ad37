"""What the instructions of a compiled program cost: operations, and bytes read and written.

By the rules of XLA's own cost analysis (``xla/service/hlo_cost_analysis.cc``), which is also what
``jax.jit(f).lower(x).compile().cost_analysis()`` tells: an elementwise instruction does one
operation per element of its result, but exponentials, logarithms, roots and the like are counted
apart as transcendentals; a multiplication and an addition are two; a reduction applies its function
once for every element that disappears; a fusion does what its parts do and touches only its inputs
and outputs; a loop counts one turn, a conditional its dearest branch.

Two rules. ``xla`` is as above, and knows the matrix products and convolutions of GPU libraries
(``__cublas$gemm``, ``__cudnn$convForward``), which XLA's own rule does not. ``xprof`` gives the
numbers of xprof 2.24.2 for GPUs: its FLOPs of elementwise instructions are clock cycles (see
`peakline.analysis.timing.hlo_cycles`), work that a fusion does twice counts twice, and a program
that calls a matrix product of a library has no costs at all.

Programs come from files: no number in them makes this fail or run for long. What cannot be costed
costs nothing and is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from peakline.analysis.timing import hlo_cost_rules as rules
from peakline.analysis.timing.hlo import parse_program
from peakline.analysis.timing.hlo_cost_rules import Made, Program

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto

__all__ = ["NOTHING", "Cost", "ProgramCost", "Rule", "cost_program", "costs_of"]

Rule = Literal["xla", "xprof"]


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


NOTHING = Cost(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ProgramCost:
    """The costs of a program: of each of its instructions by name, and of the entry computation.

    ``guessed`` counts instructions that were not as they should be and cost nothing here.
    """

    instructions: dict[str, Cost]
    total: Cost
    guessed: int = 0


def costs_of(data: bytes, rule: Rule = "xla") -> dict[str, Cost]:
    """The cost of every instruction, by name, of a serialized HloProto.

    Empty where the bytes are none. Of two instructions with one name the first counts.
    """
    return cost_program(data, rule).instructions


def cost_program(data: bytes, rule: Rule = "xla") -> ProgramCost:
    """As `costs_of`, with the sum over the entry computation."""
    proto = parse_program(data)
    if proto is None:
        return ProgramCost({}, NOTHING, 1)
    return _Costing(proto.hlo_module, rule).answer()


@dataclass
class _Costing:
    """The work on one program."""

    module: HloModuleProto
    rule: Rule
    guessed: int = 0
    sums: dict[int, rules.Sum] = field(default_factory=dict)
    """What the instructions of a computation cost together."""

    def answer(self) -> ProgramCost:
        program = Program.of(self.module, is_gpu=self.rule == "xprof")
        self.guessed += program.unknown
        if self.rule == "xprof" and program.calls_matrix_product():
            return ProgramCost({}, NOTHING, self.guessed)
        for computation in program.in_order():
            self.sums[computation] = self._compute(program, computation)
        costs: dict[str, Cost] = {}
        for made in program.all():
            costs.setdefault(made.proto.name, self._cost(made))
        parts = [self._cost(made) for made in program.computations.get(program.entry, ())]
        total = Cost(*map(sum, zip(*parts, strict=True))) if parts else NOTHING
        return ProgramCost(costs, total, self.guessed)

    def _compute(self, program: Program, computation: int) -> rules.Sum:
        total = rules.Sum()
        for made in program.computations[computation]:
            rules.prepare(made)
            rule = rules.RULES.get(made.opcode, rules.nothing_special)
            try:
                rule(made, partial(self._sum_of, made), program)
            except (IndexError, KeyError, ValueError, ArithmeticError):
                made.flops = made.transcendentals = made.bytes = 0.0
                self.guessed += 1
            total.add(made)
        return total

    def _sum_of(self, made: Made, number: int) -> rules.Sum:
        """What the called computation costs; an IndexError where there is none."""
        # One that calls itself, by way of others, is not there yet.
        return self.sums.get(made.calls[number], rules.Sum())

    def _cost(self, made: Made) -> Cost:
        read = sum(size for place, size in made.read.items() if made.is_in_main(place))
        written = sum(size for index, size in made.out.items() if made.writes_to_main(index))
        numbers: tuple[Any, ...] = (
            made.flops, made.bytes, made.transcendentals, read, written,
            made.flops / made.faster(),
        )  # fmt: skip
        round_as = rules.single if self.rule == "xprof" else float
        return Cost(*(round_as(max(number, 0)) for number in numbers))
