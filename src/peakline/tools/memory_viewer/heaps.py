"""The curve of a program's memory by its simulated heaps, and what else holds memory.

Every heap of the memory space counts. One follows the other: nothing says how they lie in time, so
while one is shown the others count at their peaks. What no heap speaks of lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.hlo.memory import STRANGE, Replay
from peakline.hlo.placement import Events, Placement
from peakline.kernels.heap_layout import ALLOCATE, SHARE
from peakline.tools.memory_viewer.scoped import largest_scoped
from peakline.tools.memory_viewer.view import Curve, ValueShapes, View, allocations_in, no_spans

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tables.programs import Programs

_HEAP = "hlo_heap"
_HEAP_DETAIL = "events of a compiled program's heap that do not fit those before"


def view_of(profile: Profile, programs: Programs, number: int, space: int) -> View:
    """What is to be shown of a program; what had to be guessed is warned of."""
    placement = Placement.of(programs, number)
    shapes = ValueShapes(placement, lambda shape, index: shape.at(index))
    known = placement.allocations
    here = allocations_in(placement, space)
    heaps = [(events, _replay(events, placement)) for events in _heaps(placement, space)]
    by_heap = np.zeros(known.number.size, np.bool_)
    for _, heap in heaps:
        by_heap[placement.values.allocation[heap.value[heap.value >= 0]]] = True
    lasting = here[~(known.is_thread_local | by_heap)[here]]
    listed = here[(known.is_indefinite | ~by_heap)[here]]
    largest = _largest(placement)[lasting]
    empty = int(np.count_nonzero(largest < 0))
    lasting, largest = lasting[largest >= 0], largest[largest >= 0]
    unknown = int(np.count_nonzero(~known.is_indefinite[lasting]))
    _warn(profile, placement, space, [heap for _, heap in heaps], unknown)
    if empty:
        profile.warn("no_values", "allocations in which no value lies: not counted", empty)
    curve = _curve(heaps, placement, shapes)
    sizes = known.bytes[lasting]
    size = sum(sizes.tolist())
    live, live_bytes = np.array(curve.live, np.int64).reshape(-1, 2).T
    drawn = here[by_heap[here]]
    bases = accumulate(known.bytes[drawn].tolist(), initial=0)
    return View(
        placement, space, shapes, curve, size, size, np.append(largest, live),
        np.append(sizes, live_bytes), listed, list(zip(drawn.tolist(), bases, strict=False)),
        max(len(curve.bytes) - 1, 0), largest_scoped(programs, number, space), by_size,
    )  # fmt: skip


def by_size(sizes: Sequence[int]) -> list[int]:
    """The order of sizes, the largest first; equal ones as they came."""
    return sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)


def _warn(
    profile: Profile, placement: Placement, space: int, heaps: list[Replay], unknown: int
) -> None:
    spaces = sorted(set(placement.allocations.space.tolist()))
    if not spaces:
        profile.warn("no_buffer_assignment", "programs that do not say where their values lie")
    elif space not in spaces:
        known = ", ".join(map(str, spaces))
        profile.warn("no_memory_space", f"nothing of the program lies in memory space {space}; "
                     f"there is: {known}")  # fmt: skip
    if unknown:
        profile.warn(
            "no_heap_trace",
            "allocations of temporaries whose content over time is not known: counted in full",
            unknown,
        )
    if len(heaps) > 1:
        profile.warn(
            "several_heaps",
            "heaps of a memory space, shown one after the other: each counts at its peak meanwhile",
            len(heaps),
        )
    if strange := sum(heap.uses.strange for heap in heaps):
        profile.warn(_HEAP, _HEAP_DETAIL, strange)


def _heaps(placement: Placement, space: int) -> list[Events]:
    """The heaps of the temporaries of a memory space: that of the first value that has a place."""
    known, owner = placement.allocations, placement.values.allocation
    is_wanted = (known.space == space) & ~known.is_indefinite
    return [
        events
        for events in placement.heaps
        if is_wanted[owner[events.value[events.value >= 0][:1]]].any()
    ]


def _largest(placement: Placement) -> Int64Array:
    """The largest value that lies in each allocation, the last of several; -1 where none does."""
    values = placement.values
    rows = np.flatnonzero(values.own == np.arange(values.own.size))
    rows = rows[np.argsort(values.bytes[rows], kind="stable")]
    result = np.full(placement.allocations.number.size, -1)
    result[values.allocation[rows]] = rows
    return result


def _replay(events: Events, placement: Placement) -> Replay:
    is_known = (events.kind >= ALLOCATE) & (events.kind <= SHARE)
    kind = np.where(is_known, events.kind, STRANGE).astype(np.uint8)
    return Replay(kind, events.value, events.shared_with, placement.values.bytes)


def _curve(heaps: list[tuple[Events, Replay]], placement: Placement, shapes: ValueShapes) -> Curve:
    """All heaps, one after the other."""
    result = Curve()
    total = sum(heap.peak for _, heap in heaps)
    unpadded = [_before(heap.curve_of(_unpadded(heap, shapes))) for _, heap in heaps]
    at_peak = [
        curve[heap.peak_event + 1] if heap.peak else 0
        for curve, (_, heap) in zip(unpadded, heaps, strict=True)
    ]
    spans, blocks = [no_spans()], [no_spans()]
    best, position, live = -1, 0, list[tuple[int, int]]()
    for number, (events, heap) in enumerate(heaps):
        base, rest = len(result.bytes), total - heap.peak
        rest_unpadded = sum(at_peak) - at_peak[number]
        result.bytes.extend([size + rest for size in _before(heap.curve)])
        result.unpadded_bytes.extend([size + rest_unpadded for size in unpadded[number]])
        result.instructions.extend([*events.instruction.tolist(), -1])
        spans.append(np.column_stack([heap.uses.value, heap.uses.spans + base]))
        has_block = heap.uses.blocks[:, 0] >= 0
        blocks.append(
            np.column_stack([heap.uses.value[has_block], heap.uses.blocks[has_block] + base])
        )
        if heap.peak > best:
            best, position = heap.peak, base + heap.peak_event
        rows, roots = heap.live()
        live += zip(rows.tolist(), placement.values.bytes[roots].tolist(), strict=True)
    return replace(
        result, peak=total, unpadded_peak=sum(at_peak), position=position, live=live,
        spans=np.concatenate(spans), blocks=np.concatenate(blocks),
    )  # fmt: skip


def _before(curve: Int64Array) -> list[int]:
    """What is live before each event and after the last."""
    return [0, *curve.tolist()]


def _unpadded(heap: Replay, shapes: ValueShapes) -> Int64Array:
    """The bytes of the heap's values without padding."""
    result, rows = np.zeros(heap.size.size, np.int64), heap.value[heap.value >= 0]
    result[rows] = shapes.bytes[rows]
    return result
