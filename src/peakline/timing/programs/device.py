"""The ops of a device's events: instructions of compiled programs, kinds of events, kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array
from peakline.hlo.cost import NOTHING, Cost
from peakline.hlo.modules import Instruction, Module, modules_of
from peakline.hlo.row_costs import row_costs
from peakline.tables import Names, Profile
from peakline.timing.ops.names import UNKNOWN, parse_op_name
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace.distribution import distinct

Key = tuple[int, str]
"""A program (or a stage of an input pipeline; 0 where there is none) and the op's name."""


class DeviceOp(NamedTuple):
    """An op of a device, and what one run of it costs.

    ``provenance`` is the full name of the framework's op it was made for; without one it stands for
    ``name`` and ``op_type``. ``category`` is the kind of work in XLA's words, empty where nobody
    says it; ``bytes_read`` and ``bytes_written`` are what of the bytes lies in main memory.
    """

    key: Key
    name: str
    op_type: str = ""
    provenance: str = ""
    flops: float = 0.0
    model_flops: float = 0.0
    bytes_accessed: float = 0.0
    category: str = ""
    bytes_read: float = 0.0
    bytes_written: float = 0.0


class Programs:
    """The compiled programs of a profile by id, and the costs of their instructions."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._modules: dict[int | None, Module] = {}
        for module in filter(self.takes, modules_of(profile)):
            self._modules.setdefault(module.program_id, module)
        self._arguments: dict[int, frozenset[str]] = {}

    def find(self, program: int, name: str) -> Instruction | None:
        """The instruction of a program by its name."""
        module = self._modules.get(program)
        return None if module is None else module.instructions.get(name)

    def module(self, program: int) -> Module | None:
        """A program by its id; None for one that is not there."""
        return self._modules.get(program)

    def takes(self, module: Module) -> bool:  # noqa: ARG002
        """Whether a program counts."""
        return True

    def module_cost(self, module: Module, name: str) -> Cost:
        """What one run of an instruction of a program costs."""
        row = None if module.index is None else module.index.row(name)
        if row is None:
            return NOTHING
        costs = row_costs(self._profile, module.number)
        return costs.distinct[int(costs.code[row])]

    def op(self, program: int, name: str, flops: int, moved: int) -> DeviceOp | None:
        """The op that an instruction is; one of a program that is not there stands for itself.

        ``flops`` and ``moved`` are what the event says of its operations and bytes.
        """
        made = self.find(program, name)
        if made is None:
            return DeviceOp((program, name), name, "", "", flops, flops, moved)
        op = self.known_op(program, made, flops, moved)
        return op._replace(provenance="") if self._names_argument(program, made) else op

    def known_op(self, program: int, made: Instruction, flops: int, moved: int) -> DeviceOp:
        """As `op`, of an instruction that is there, with all that it says of what it is for."""
        cost = self.cost(program, made.name)
        provenance = f"{made.op_name}:{made.op_type}" if made.op_name or made.op_type else ""
        done = cost.device_flops if cost.device_flops > 0 else float(flops)
        return DeviceOp(
            (program, made.name), made.name, "", provenance, done,
            cost.flops if cost.flops > 0 else float(flops),
            cost.bytes_accessed if cost.bytes_accessed > 0 else float(moved), made.category,
            *((cost.bytes_read, cost.bytes_written) if cost.bytes_accessed > 0 else (0.0, 0.0)),
        )  # fmt: skip

    def _names_argument(self, program: int, made: Instruction) -> bool:
        """Whether the name of an instruction's op is that of an argument of the program.

        JAX calls a parameter as the function does (``a``), and what XLA makes of the parameter
        alone, as its transpose, keeps that name.
        """
        if made.op_type or "/" in made.op_name:
            return False
        if program not in self._arguments:
            origins = self._modules[program].origins("parameter")
            self._arguments[program] = frozenset(name for name, _ in origins)
        return made.op_name in self._arguments[program]

    def cost(self, program: int, name: str) -> Cost:
        """What one run of an instruction costs."""
        module = self._modules.get(program)
        return NOTHING if module is None else self.module_cost(module, name)


@dataclass(frozen=True, eq=False)
class GpuOps:
    """The op of each of some events of GPUs, as a place in ``ops``; -1 where it is not known."""

    ops: list[DeviceOp]
    op: Int32Array
    is_hlo: BoolArray
    """Whether it says which instruction it is, known or not."""


def gpu_ops(profile: Profile, rows: AnyArray, names: Names, programs: Programs) -> GpuOps:
    """Which ops the events ``rows`` with ``names`` were, by what they say of themselves."""
    stats = op_stats_of(profile)
    hlo, framework = stats["hlo_op"].texts_at(rows), stats["tf_op"].texts_at(rows)
    program = stats["program_id"].integers_at(rows)
    flops, moved = stats["flops"].integers_at(rows), stats["bytes_accessed"].integers_at(rows)
    first, place = distinct(hlo, framework, program, names.codes, flops, moved)
    texts = stats["hlo_op"].texts
    ops: list[DeviceOp] = []
    numbers: dict[DeviceOp, int] = {}
    op_of = np.full(first.size, -1, np.int32)
    for number, row in enumerate(first.tolist()):
        event = names[row] or ""
        result: DeviceOp | None = None
        if hlo[row] >= 0:
            name = texts[int(hlo[row])].rsplit("::", 1)[-1]
            owner = int(program[row]) % 2**64
            result = programs.op(owner, name, int(flops[row]), int(moved[row]))
        elif framework[row] >= 0:
            text = texts[int(framework[row])]
            parsed = parse_op_name(text)
            name = f"{parsed.name}/{event}"
            category = parsed.op_type or UNKNOWN
            result = DeviceOp((0, name), name, provenance=text, category=category)
        if result is not None:
            op_of[number] = numbers.setdefault(result, len(ops))
            if op_of[number] == len(ops):
                ops.append(result)
    return GpuOps(ops, op_of[place], hlo >= 0)
