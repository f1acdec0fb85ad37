"""The memory of a compiled program in the simplest way, on its message: the rules of ours."""

from __future__ import annotations

from typing import Any

from peakline.schema import HloProto
from reference.hlo_memory import replay

MIB = 2**20


def curve_of(proto: HloProto, space: int = 0) -> dict[str, Any]:
    """What ``memory_viewer`` says of a program's heaps and allocations, in bytes."""
    assignment = proto.buffer_assignment
    size = {value.id: value.size for value in assignment.logical_buffers}
    owner = {
        one.logical_buffer_id: allocation
        for allocation in assignment.buffer_allocations
        for one in allocation.assigned
        if one.logical_buffer_id in size
    }
    here = [one for one in assignment.buffer_allocations if one.color == space]
    heaps, covered = [], set()
    for trace in assignment.heap_simulator_traces:
        first = next((e.buffer_id for e in trace.events if e.buffer_id in owner), None)
        if first is None or owner[first].color != space or _lasts(owner[first]):
            continue
        heap = _replay(trace, {number: size[number] for number in owner})
        heaps.append(heap)
        covered.update(owner[number].index for number in heap["seen"])
    # What holds no value is not counted.
    filled = {allocation.index for allocation in owner.values()} - covered
    lasting = sum(one.size for one in here if not one.is_thread_local and one.index in filled)
    peaks = sum(heap["peak"] for heap in heaps)
    points = []
    for heap in heaps:
        points += [live + peaks - heap["peak"] + lasting for live in heap["points"]]
    return {
        "points": points,
        "peak": peaks + lasting,
        "lasting": lasting,
        "total": sum(one.size for one in here if not one.is_thread_local),
        "parameters": sum(one.size for one in here if one.is_entry_computation_parameter),
        "outputs": sum(one.size for one in here if one.maybe_live_out),
        "reserved": sum(one.size for one in here if one.is_thread_local or one.is_tuple),
        "names": [n for h in heaps for n in h["names"]],
        "strange": sum(heap["strange"] for heap in heaps),
    }


def _lasts(allocation: Any) -> bool:
    return bool(
        allocation.is_thread_local
        or allocation.is_entry_computation_parameter
        or allocation.is_constant
        or allocation.maybe_live_out
    )


def _replay(trace: Any, size: dict[int, int]) -> dict[str, Any]:
    replayed = replay(trace.events, size)
    points = [0, *replayed.live]
    names = [*(event.instruction_name for event in trace.events), ""]
    return {
        "points": points, "peak": max(points), "seen": replayed.spans, "names": names,
        "strange": replayed.strange,
    }  # fmt: skip
