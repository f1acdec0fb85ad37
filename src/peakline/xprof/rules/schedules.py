"""Whether XLA takes the schedule of a program (``HloSchedule::Verify`` in openxla/xla)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.hlo.printing.order import local
from peakline.hlo.printing.outline import Outline

if TYPE_CHECKING:
    from peakline.hlo.messages import ModuleParts
    from peakline.schema import HloComputationProto


def is_schedule_sound(parts: ModuleParts) -> bool:
    """Whether every computation that is no fusion's has its instructions in an order, each once and
    behind its operands; of each thread all or none.
    """
    if not parts.head.HasField("schedule"):
        return True
    sequences = parts.head.schedule.sequences
    fused: set[int] = set()
    for one in parts.computations:
        if one.is_fusion_computation:
            fused.add(one.id)
        for made in one.instructions:
            if made.opcode == "fusion":
                fused.update(made.called_computation_ids)
    outline = Outline(parts.computations)
    threads = outline.threads()
    scheduled = {threads.of(number) for number in sequences}
    wanted = {
        number: place
        for number, place in outline.places.items()
        if number not in fused and threads.of(number) in scheduled
    }
    return set(sequences) == wanted.keys() and all(
        _is_sound(parts.computations[place], sequences[number].instruction_ids)
        for number, place in wanted.items()
    )


def _is_sound(one: HloComputationProto, order: Sequence[int]) -> bool:
    places = {local(number): place for place, number in enumerate(order)}
    return len(places) == len(order) == len(one.instructions) and all(
        places.get(local(number), len(order)) < places.get(local(made.id), -1)
        for made in one.instructions
        for number in (*made.operand_ids, *made.control_predecessor_ids)
    )
