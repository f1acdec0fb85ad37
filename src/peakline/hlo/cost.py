"""What the instructions of a compiled program cost: operations, and bytes read and written.

By the rules of XLA's own cost analysis (``xla/service/hlo_cost_analysis.cc``), which is also what
``jax.jit(f).lower(x).compile().cost_analysis()`` tells: an elementwise instruction does one
operation per element of its result, but exponentials, logarithms, roots and the like are counted
apart as transcendentals; a multiplication and an addition are two; a reduction applies its function
once for every element that disappears; a fusion does what its parts do and touches only its inputs
and outputs; a loop counts one turn, a conditional its dearest branch.

Two rules. ``xla`` is as above, and knows the matrix products and convolutions of GPU libraries
(``__cublas$gemm``, ``__cudnn$convForward``), which XLA's own rule does not. ``xprof`` gives the
numbers of xprof 2.24.2 for GPUs (see `peakline.hlo.cost_gpu`): its FLOPs of
elementwise instructions are clock cycles, work that a fusion does twice counts twice, what its
analysis does not come to has no costs, and nothing has any in a program with an instruction that it
cannot read.

Programs come from files: no number in them makes this fail or run for long. What cannot be costed
costs nothing and is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from peakline.hlo import cost_gpu as gpu
from peakline.hlo import cost_rules as rules
from peakline.hlo.modules import parse_program
from peakline.hlo.program import Made, Program, Sum, single

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
    sums: dict[int, Sum] = field(default_factory=dict)
    """What the instructions of a computation cost together."""
    uncosted: set[int] = field(default_factory=set)
    """Computations in which XProf's analysis ends."""

    def answer(self) -> ProgramCost:
        program = Program.of(self.module, is_gpu=self.rule == "xprof")
        self.guessed += program.unknown
        for computation in program.in_order():
            self.sums[computation] = self._compute(program, computation)
        counted = self._visited(program) if program.is_gpu else program.computations.keys()
        if not self.uncosted.isdisjoint(counted):
            return ProgramCost({}, NOTHING, self.guessed)
        costs: dict[str, Cost] = {}
        for computation, listed in program.computations.items():
            for made in listed:
                cost = self._cost(made) if computation in counted else NOTHING
                costs.setdefault(made.proto.name, cost)
        parts = [self._cost(made) for made in program.computations.get(program.entry, ())]
        total = Cost(*map(sum, zip(*parts, strict=True))) if parts else NOTHING
        return ProgramCost(costs, total, self.guessed)

    def _compute(self, program: Program, computation: int) -> Sum:
        total = Sum()
        prepare = gpu.prepare_on_gpu if program.is_gpu else rules.prepare
        by_opcode = gpu.GPU_RULES if program.is_gpu else rules.RULES
        for made in program.computations[computation]:
            prepare(made)
            rule = by_opcode.get(made.opcode, rules.nothing_special)
            try:
                rule(made, partial(self._sum_of, made), program)
            except gpu.UncostedError:
                self.uncosted.add(computation)
            except (IndexError, KeyError, TypeError, ValueError, ArithmeticError):
                made.flops = made.transcendentals = made.bytes = 0.0
                self.guessed += 1
            total.add(made)
        return total

    @staticmethod
    def _visited(program: Program) -> set[int]:
        """The computations that XProf's analysis comes to, from the entry on."""
        found: set[int] = set()
        waiting = [program.entry]
        while waiting:
            number = waiting.pop()
            if number not in found and number in program.computations:
                found.add(number)
                for made in program.computations[number]:
                    waiting += gpu.visited(made, program)
        return found

    def _sum_of(self, made: Made, number: int) -> Sum:
        """What the called computation costs; an IndexError where there is none."""
        # One that calls itself, by way of others, is not there yet.
        return self.sums.get(made.calls[number], Sum())

    def _cost(self, made: Made) -> Cost:
        read = sum(size for place, size in made.read.items() if made.is_in_main(place))
        written = sum(size for index, size in made.out.items() if made.writes_to_main(index))
        if self.rule == "xprof":
            # XLA keeps 32 bits, XProf whole numbers.
            numbers = made.flops, made.bytes, made.transcendentals, read, written
            whole = [int(single(max(number, 0))) for number in numbers]
            saved = int(single(made.flops - made.flops / gpu.faster(made)))
            return Cost(*map(float, (*whole, whole[0] - saved)))
        numbers = made.flops, made.bytes, made.transcendentals, read, written
        device_flops = made.flops / made.faster()
        return Cost(*(float(max(number, 0)) for number in (*numbers, device_flops)))
