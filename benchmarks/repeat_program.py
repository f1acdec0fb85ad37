"""Makes a large compiled program: a real one many times over, as a model of many layers is.

    python benchmarks/repeat_program.py --target 100MB out.hlo_proto.pb

The program is `jit_train_step` of the JAX profile in tests/data. Every copy has instructions,
computations, values, allocations and parameters with ids and names of their own; all temporaries
share one allocation and one simulated heap, one copy after the other.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import peakline
from peakline.schema import HloComputationProto, HloProto
from peakline.text import parse_size

ROOT = Path(__file__).parent.parent
_SESSION = ROOT / "tests/data/sessions/jax_cpu"
_NAME = "jit_train_step"
_COPIED_IDS = 100_000
"""More than an entry computation has instructions."""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", type=parse_size, required=True, help="about so many bytes")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    with peakline.open(_SESSION) as profile:
        programs = profile.programs()
        number = next(n for n in range(len(programs)) if programs.name(n) == _NAME)
        source = HloProto.FromString(programs.data(number).tobytes())
    repeated = _Repeated(source)
    for copy in range(max(options.target // source.ByteSize(), 1)):
        repeated.add(copy)
    options.output.write_bytes(repeated.program().SerializeToString())
    return 0


class _Repeated:
    """A program of copies of ``source``."""

    def __init__(self, source: HloProto) -> None:
        self._source, self._module = source, source.hlo_module
        self._assignment = source.buffer_assignment
        self._entry_id = self._module.entry_computation_id
        self._computations = max(one.id for one in self._module.computations) + 1
        self._values = max(one.id for one in self._assignment.logical_buffers) + 1
        self._out = HloProto()
        self._out.hlo_module.CopyFrom(self._module)
        del self._out.hlo_module.computations[:]
        self._out.hlo_module.schedule.Clear()
        self._trace = self._out.buffer_assignment.heap_simulator_traces.add()
        entry = next(one for one in self._module.computations if one.id == self._entry_id)
        self._parameters = len(entry.program_shape.parameters)
        self._entry = HloComputationProto()
        self._entry.CopyFrom(entry)
        del self._entry.instructions[:]
        del self._entry.program_shape.parameters[:]
        self._temporaries: dict[int, int] = {}

    def program(self) -> HloProto:
        """What there is so far."""
        self._out.hlo_module.computations.add().CopyFrom(self._entry)
        self._out.hlo_module.host_program_shape.CopyFrom(self._entry.program_shape)
        return self._out

    def add(self, copy: int) -> None:
        """One copy more."""
        for computation in self._module.computations:
            self._add_computation(computation, copy)
        for key, sequence in self._module.schedule.sequences.items():
            more = self._out.hlo_module.schedule.sequences[self._computation(key, copy)]
            more.instruction_ids.extend(self._id(one, copy) for one in sequence.instruction_ids)
        self._add_assignment(copy)

    def _computation(self, number: int, copy: int) -> int:
        return number if number == self._entry_id else number + copy * self._computations

    def _id(self, number: int, copy: int) -> int:
        # The upper half of an instruction's id is that of its computation.
        computation, low = number >> 32, number & 0xFFFFFFFF
        low += copy * _COPIED_IDS if computation == self._entry_id else 0
        return (self._computation(computation, copy) << 32) + low

    def _add_computation(self, source: HloComputationProto, copy: int) -> None:
        if source.id == self._entry_id:
            made = self._entry
            made.program_shape.parameters.extend(source.program_shape.parameters)
        else:
            made = self._out.hlo_module.computations.add()
            made.CopyFrom(source)
            del made.instructions[:]
            made.id = self._computation(source.id, copy)
            made.name = _named(source.name, copy)
        made.root_id = self._id(source.root_id, copy)
        for instruction in source.instructions:
            one = made.instructions.add()
            one.CopyFrom(instruction)
            one.id, one.name = self._id(one.id, copy), _named(one.name, copy)
            one.operand_ids[:] = [self._id(each, copy) for each in one.operand_ids]
            before = [self._id(each, copy) for each in one.control_predecessor_ids]
            one.control_predecessor_ids[:] = before
            called = [self._computation(each, copy) for each in one.called_computation_ids]
            one.called_computation_ids[:] = called
            if one.opcode == "parameter" and source.id == self._entry_id:
                one.parameter_number += copy * self._parameters

    def _add_assignment(self, copy: int) -> None:
        made, first = self._out.buffer_assignment, copy * self._values
        for value in self._assignment.logical_buffers:
            one = made.logical_buffers.add()
            one.CopyFrom(value)
            one.id += first
            one.defined_at.instruction_id = self._id(value.defined_at.instruction_id, copy)
        for alias in self._assignment.buffer_aliases:
            other = made.buffer_aliases.add()
            other.CopyFrom(alias)
            other.source_buffer_id += first
            other.location.instruction_id = self._id(alias.location.instruction_id, copy)
        for allocation in self._assignment.buffer_allocations:
            is_fixed = (
                allocation.is_thread_local or allocation.is_constant or allocation.maybe_live_out
                or allocation.is_entry_computation_parameter
            )  # fmt: skip
            known = None if is_fixed else self._temporaries.get(allocation.index)
            if known is None:
                known = len(made.buffer_allocations)
                place = made.buffer_allocations.add()
                place.CopyFrom(allocation)
                del place.assigned[:]
                place.index = known
                place.parameter_number += copy * self._parameters
                if not is_fixed:
                    self._temporaries[allocation.index] = known
            for assigned in allocation.assigned:
                where = made.buffer_allocations[known].assigned.add()
                where.CopyFrom(assigned)
                where.logical_buffer_id += first
        for trace in self._assignment.heap_simulator_traces:
            for event in trace.events:
                again = self._trace.events.add()
                again.CopyFrom(event)
                again.buffer_id += first
                if event.share_with_canonical_id:
                    again.share_with_canonical_id += first
                again.instruction_name = _named(event.instruction_name, copy)


def _named(name: str, copy: int) -> str:
    return f"{name}.copy{copy}" if copy else name


if __name__ == "__main__":
    sys.exit(main())
