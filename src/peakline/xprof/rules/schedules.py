"""Whether XLA takes the schedule of a program (``HloSchedule::Verify`` in openxla/xla)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.hlo.printing.module import execution_threads
from peakline.hlo.printing.order import local

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloModuleProto


def is_schedule_sound(module: HloModuleProto) -> bool:
    """Whether every computation that is no fusion's has its instructions in an order, each once and
    behind its operands; of each thread all or none.
    """
    if not module.HasField("schedule"):
        return True
    sequences = module.schedule.sequences
    fused = {one.id for one in module.computations if one.is_fusion_computation}
    fused |= {
        number
        for one in module.computations
        for made in one.instructions
        if made.opcode == "fusion"
        for number in made.called_computation_ids
    }
    by_id = {one.id: one for one in module.computations}
    threads = execution_threads(module)
    scheduled = {threads.of(number) for number in sequences}
    wanted = {number for number in by_id if number not in fused and threads.of(number) in scheduled}
    return set(sequences) == wanted and all(
        _is_sound(by_id[number], sequences[number].instruction_ids) for number in wanted
    )


def _is_sound(one: HloComputationProto, order: Sequence[int]) -> bool:
    places = {local(number): place for place, number in enumerate(order)}
    return len(places) == len(order) == len(one.instructions) and all(
        places.get(local(number), len(order)) < places.get(local(made.id), -1)
        for made in one.instructions
        for number in (*made.operand_ids, *made.control_predecessor_ids)
    )
