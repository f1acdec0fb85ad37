"""The curve of a program's memory by its simulated heaps, and what else holds memory.

Every heap of the memory space counts. One follows the other: nothing says how they lie in time, so
while one is shown the others count at their peaks. What no heap speaks of lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline
from peakline.hlo.placement import ALLOC, FREE, SHARE, Events, Placement
from peakline.tools.memory_viewer.scoped import largest_scoped
from peakline.tools.memory_viewer.view import Curve, ValueShapes, View, allocations_in

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tables.programs import Programs

_CHECK_EVERY = 4096
_HEAP = "hlo_heap"
_HEAP_DETAIL = "events of a compiled program's heap that do not fit those before"


@dataclass(eq=False)
class _Heap:
    """One heap replayed; see `Curve`. ``holder`` is by value the one whose memory it uses, ``top``
    by the latter the one that was last put there.
    """

    bytes: list[int] = field(default_factory=list)
    unpadded: list[int] = field(default_factory=list)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    holder: dict[int, int] = field(default_factory=dict)
    top: dict[int, int] = field(default_factory=dict)
    position: int = 0
    strange: int = 0

    @property
    def peak(self) -> int:
        return max(self.bytes, default=0)


def view_of(profile: Profile, programs: Programs, number: int, space: int) -> View:
    """What is to be shown of a program; what had to be guessed is warned of."""
    placement = Placement(programs, number)
    shapes = ValueShapes(placement, lambda shape, index: shape.at(index))
    known = placement.allocations
    here = allocations_in(placement, space)
    heaps = [(events, _replayed(events, placement, shapes)) for events in _heaps(placement, space)]
    owner = placement.values.allocation
    by_heap = {owner[row] for _, heap in heaps for row in heap.spans}
    lasting = [row for row in here if not known.is_thread_local[row] and row not in by_heap]
    listed = [row for row in here if known.is_indefinite(row) or row not in by_heap]
    unknown = sum(not known.is_indefinite(row) for row in lasting)
    _warn(profile, placement, space, [heap for _, heap in heaps], unknown)
    curve = _curve(heaps, placement)
    size = sum(known.bytes[row] for row in lasting)
    shown = [(_largest(placement, row), known.bytes[row]) for row in lasting]
    drawn, base = [], 0
    for row in here:
        if row in by_heap:
            drawn.append((row, base))
            base += known.bytes[row]
    return View(
        placement, space, shapes, curve, size, size, [*shown, *curve.live], listed, drawn,
        max(len(curve.bytes) - 1, 0), largest_scoped(programs, number, space), by_size,
    )  # fmt: skip


def by_size(sizes: Sequence[int]) -> list[int]:
    """The order of sizes, the largest first; equal ones as they came."""
    return sorted(range(len(sizes)), key=lambda at: -sizes[at])


def _warn(
    profile: Profile, placement: Placement, space: int, heaps: list[_Heap], unknown: int
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
    if strange := sum(heap.strange for heap in heaps):
        profile.warn(_HEAP, _HEAP_DETAIL, strange)


def _heaps(placement: Placement, space: int) -> list[Events]:
    """The heaps of the temporaries of a memory space: that of the first value that has a place."""
    known, owner = placement.allocations, placement.values.allocation
    found = []
    for events in placement.heaps:
        first = next((row for row in events.value if row >= 0), -1)
        if first >= 0:
            allocation = owner[first]
            if int(known.space[allocation]) == space and not known.is_indefinite(allocation):
                found.append(events)
    return found


def _largest(placement: Placement, allocation: int) -> int:
    """The largest value of an allocation, the last of several; -1 where it has none."""
    values = placement.values
    rows = placement.allocations.values(allocation)
    return max(rows, key=lambda row: (values.own[row] >= 0, values.bytes[row], row), default=-1)


def _replayed(events: Events, placement: Placement, shapes: ValueShapes) -> _Heap:
    """What is live before every event and after the last; events that fit none before are counted.

    A value that is shared with one of which nothing was in use any more brings its memory back: an
    operation in place gives its operand free first (``HeapSimulator::RunComputation``).
    """
    values, heap = placement.values, _Heap()
    holder, top = heap.holder, heap.top
    uses: dict[int, int] = {}
    live = unpadded = most = 0
    end = len(events.kind)
    rows = zip(events.kind, events.value, events.shared_with, strict=True)
    for at, (kind, row, other) in enumerate(rows):
        if at % _CHECK_EVERY == 0:
            check_deadline()
        heap.bytes.append(live)
        heap.unpadded.append(unpadded)
        change, root = 0, row
        if row < 0 or kind not in (ALLOC, FREE, SHARE) or (kind == SHARE and other < 0):
            heap.strange += 1
            continue
        if kind == FREE:
            root = _root(holder, row)
            if uses.get(root, 0) <= 0:
                heap.strange += 1
                continue
            uses[root] -= 1
            change = -1 if not uses[root] else 0
            if change:
                heap.blocks[top[root]] = heap.blocks[top[root]][0], at
            heap.spans[row] = heap.spans.get(row, (at, at))[0], at
        else:
            root = _root(holder, other if kind == SHARE else row)
            if kind == ALLOC and uses.get(root, 0) > 0:
                heap.strange += 1
                continue
            root = root if kind == SHARE else row
            holder[row] = root
            uses[root] = uses.get(root, 0) + 1
            change = 1 if uses[root] == 1 else 0
            if not change:
                heap.blocks[top[root]] = heap.blocks[top[root]][0], at
            top[root] = row
            heap.spans[row] = heap.blocks[row] = at, end
        live += change * values.bytes[root]
        unpadded += change * shapes.bytes(root)
        if live > most:
            most, heap.position = live, at
    heap.bytes.append(live)
    heap.unpadded.append(unpadded)
    return heap


def _root(holder: dict[int, int], row: int) -> int:
    """The value whose memory a value uses; on the way every pointer is halved."""
    while (above := holder.get(row, row)) != row:
        holder[row] = row = holder.get(above, above)
    return row


def _curve(heaps: list[tuple[Events, _Heap]], placement: Placement) -> Curve:
    """All heaps, one after the other."""
    found = Curve()
    values, total = placement.values, sum(heap.peak for _, heap in heaps)
    at_peak = [heap.unpadded[heap.position + 1] for _, heap in heaps]
    best, position, live = -1, 0, []
    for number, (events, heap) in enumerate(heaps):
        base, rest = len(found.bytes), total - heap.peak
        rest_unpadded = sum(at_peak) - at_peak[number]
        found.bytes.extend(size + rest for size in heap.bytes)
        found.unpadded_bytes.extend(size + rest_unpadded for size in heap.unpadded)
        found.instructions.extend([*events.instruction, ""])
        found.spans.update(
            {row: (start + base, end + base) for row, (start, end) in heap.spans.items()}
        )
        found.blocks.update(
            {row: (start + base, end + base) for row, (start, end) in heap.blocks.items()}
        )
        if heap.peak > best:
            best, position = heap.peak, base + heap.position
        live += [(row, values.bytes[root]) for row, root in _live(heap)]
    return Curve(
        found.bytes, found.unpadded_bytes, found.instructions, total, sum(at_peak), position, live,
        found.spans, found.blocks,
    )  # fmt: skip


def _live(heap: _Heap) -> list[tuple[int, int]]:
    """What is live at a heap's peak, in the order in which it began: per piece of memory the value
    that was last put there, and the one whose memory it is.
    """
    at = heap.position
    held: dict[int, tuple[int, int]] = {}
    for row, (start, end) in heap.spans.items():
        if start <= at < end and heap.peak:
            root = _root(heap.holder, row)
            held[root] = max(held.get(root, (-1, row)), (start, row))
    return [(row, root) for root, (_, row) in held.items()]
