"""Which heap XProf shows, what it holds live, and where it fails
(``convert/hlo_proto_to_memory_visualization_utils.cc``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.errors import InputError
from peakline.hlo.placement import Events, Placement
from peakline.kernels.heap_layout import ALLOCATE, FREE, SHARE
from peakline.tools.memory_viewer.scoped import largest_scoped
from peakline.tools.memory_viewer.view import Curve, ValueShapes, View, allocations_in
from peakline.xprof.rules.cpp_sort import order_descending

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.shapes import Shape
    from peakline.tables import Profile
    from peakline.tables.programs import Programs

_CHECK_EVERY = 4096


def view_of(profile: Profile, programs: Programs, number: int, space: int) -> View:
    """What XProf shows of a program; raises InputError where it fails."""
    placement = Placement.of(programs, number)
    known, shapes = placement.allocations, ValueShapes(placement, _last_part)
    here = allocations_in(placement, space)
    heap_of = _heap_of_allocations(placement)
    chosen = _chosen_heap(placement, space, here, heap_of)
    curve = Curve()
    if chosen >= 0:
        try:
            curve = _curve(placement.heaps[chosen], placement, shapes)
        except _FailsError as error:
            raise InputError(
                f"{profile.path}: XProf does not show this program: {error}; "
                "without compatible=xprof it is shown"
            ) from error
    lasting = _lasting(placement, here)
    shown = lasting if space == 0 else lasting[:0]
    indefinite = here[(known.is_indefinite & ~known.is_thread_local)[here]]
    taken = sum(known.bytes[indefinite].tolist())
    live, live_bytes = np.array(curve.live, np.int64).reshape(-1, 2).T
    drawn, steps = _drawn(placement, here, heap_of)
    return View(
        placement, space, shapes, curve,
        sum(known.bytes[placement.values.allocation[lasting]].tolist()), taken,
        np.append(shown, live), np.append(placement.values.bytes[shown], live_bytes), indefinite,
        drawn, steps, largest_scoped(programs, number, space), order_descending, _int32,
    )  # fmt: skip


def _int32(number: Int64Array) -> Int64Array:
    return (number + 2**31) % 2**32 - 2**31


def _last_part(shape: Shape, index: tuple[int, ...]) -> Shape:
    """XProf takes the last step of the path as one from the whole shape."""
    return shape.parts[index[-1]] if 0 <= index[-1] < len(shape.parts) else shape


def _is_known(placement: Placement) -> BoolArray:
    """Which values XProf knows: those whose instruction the program has; the last, of row -1, is
    not.
    """
    return np.append(placement.values.instruction, -1) >= 0


def _heap_of_allocations(placement: Placement) -> dict[int, int]:
    """The heap of each allocation: the last whose first event is about a value that lies in it."""
    result: dict[int, int] = {}
    is_known = _is_known(placement)
    for at, events in enumerate(placement.heaps):
        first = events.value[:1]
        for allocation in placement.values.allocation[first[is_known[first]]].tolist():
            result[allocation] = at
    return result


def _chosen_heap(
    placement: Placement, space: int, here: Int64Array, heap_of: dict[int, int]
) -> int:
    """The heap that is shown: of the first allocation of temporaries that has one, else the one
    with most events about values of the memory space, -1 for none.
    """
    values = placement.values
    for row in here[~placement.allocations.is_indefinite[here]].tolist():
        if row in heap_of:
            return heap_of[row]
    best, most = -1, 0
    is_here = _is_known(placement) & (np.append(values.space, space) == space)
    for at, events in enumerate(placement.heaps):
        count = int(np.count_nonzero(is_here[events.value]))
        if count > most:
            best, most = at, count
    return best


def _lasting(placement: Placement, here: Int64Array) -> Int64Array:
    """Of each allocation that lasts, but for those of threads, the largest value, the first of
    several; not of those whose values are empty.
    """
    known, values = placement.allocations, placement.values
    chosen = here[(known.is_indefinite & ~known.is_thread_local)[here]]
    at, place = known.values(chosen)
    row = values.own[at]
    size = np.where(_is_known(placement)[row], np.append(values.bytes, 0)[row], 0)
    order = np.lexsort((-np.arange(size.size), size, place))
    last = order[np.append(place[order][1:] != place[order][:-1], True)[: order.size]]
    result: Int64Array = row[last[size[last] > 0]]
    return result


def _drawn(
    placement: Placement, here: Int64Array, heap_of: dict[int, int]
) -> tuple[list[tuple[int, int]], int]:
    """The allocations of temporaries that have a heap with the places where XProf draws them, and
    the steps.
    """
    known = placement.allocations
    drawn, base, steps = [], 0, 0
    for row in here[~known.is_indefinite[here]].tolist():
        if row in heap_of:
            drawn.append((row, base))
            base += int(known.bytes[row])
            steps = max(steps, placement.heaps[heap_of[row]].kind.size)
    return drawn, steps


class _FailsError(Exception):
    """Why XProf gives no answer."""


@dataclass(eq=False)
class _Replay:
    """A heap while it is replayed, by row of values, of which each has its bytes, with padding and
    without, and whether it `_is_known`.

    ``held`` are the values in use, in the order in which they came to be, one that came to be twice
    twice; ``display`` says by which another one is shown, that took over its memory when nothing
    was in use of it.
    """

    sizes: list[int]
    unpadded_sizes: list[int]
    is_known: list[bool]
    bytes: int = 0
    unpadded: int = 0
    uses: dict[int, int] = field(default_factory=dict)
    canonical: dict[int, int] = field(default_factory=dict)
    jump: dict[int, int] = field(default_factory=dict)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)
    grown: int = 0
    display: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def step(self, at: int, event: tuple[int, int, int], last: int) -> None:
        """One event; ``last`` is the number of the last one."""
        kind, row, other = event
        if not self.is_known[row]:
            return
        self.seen.add(row)
        if kind == ALLOCATE:
            self._use(row, 1)
            self.spans[row] = at, last
            self._grow(row)
        elif kind == FREE:
            uses = self._use(row, -1)
            if uses < 0:
                raise _FailsError("a value of its heap is freed twice")
            if uses == 0:
                self._shrink(self._root(row), at)
            if row in self.spans and row in self.canonical:
                self.spans[row] = self.spans[row][0], at
        elif kind == SHARE:
            if self.is_known[other] and self._share(row, other) == 1:
                root = self._root(other)
                self.display[root] = row
                self.spans[row] = at, last
                self._grow(root)
        else:
            raise _FailsError("its heap has events of no known kind")

    def _root(self, row: int) -> int:
        """The value whose memory a value uses; on the way every pointer is halved."""
        jump = self.jump
        while (above := jump.get(row, row)) != row:
            jump[row] = row = jump.get(above, above)
        return row

    def _share(self, row: int, other: int) -> int:
        """Let a value use the memory of another; how many use it then."""
        if self._root(other) == row:
            raise _FailsError("a value of its heap shares its own memory")
        again = row in self.canonical
        self.canonical[row] = self.jump[row] = other
        if again:
            # The ways through it were shortened to where it no longer leads.
            self.jump = dict(self.canonical)
        return self._use(row, 1)

    def _use(self, row: int, change: int) -> int:
        root = self._root(row)
        self.uses[root] = self.uses.get(root, 0) + change
        return self.uses[root]

    def _grow(self, row: int) -> None:
        self.held[self.grown] = row
        self.places.setdefault(row, []).append(self.grown)
        self.grown += 1
        self.bytes += self.sizes[row]
        self.unpadded += self.unpadded_sizes[row]

    def _shrink(self, row: int, at: int) -> None:
        for place in self.places.pop(row, ()):
            del self.held[place]
        self.bytes -= self.sizes[row]
        if self.bytes < 0:
            raise _FailsError("more of its heap is freed than there was")
        self.unpadded -= self.unpadded_sizes[row]
        if row in self.spans and row not in self.display:
            self.spans[row] = self.spans[row][0], at


def _curve(events: Events, placement: Placement, shapes: ValueShapes) -> Curve:
    """One heap, replayed; once more up to its peak for what is live then."""
    values = placement.values
    columns = values.bytes.tolist(), shapes.bytes.tolist(), _is_known(placement).tolist()
    rows = list(zip(*map(_items, (events.kind, events.value, events.shared_with)), strict=True))
    whole, last = _Replay(*columns), len(rows) - 1
    sizes, unpadded, peak, unpadded_peak, position = [0], [0], 0, 0, -1
    for at, event in enumerate(rows):
        if at % _CHECK_EVERY == 0:
            check_deadline()
        whole.step(at, event, last)
        sizes.append(whole.bytes)
        unpadded.append(whole.unpadded)
        if whole.bytes > peak:
            peak, unpadded_peak, position = whole.bytes, whole.unpadded, at
    if np.unique(values.allocation[list(whole.seen)]).size != 1:
        raise _FailsError("its heap has values of several allocations, or of none")
    at_peak = _Replay(*columns)
    for at, event in enumerate(rows[: position + 1]):
        at_peak.step(at, event, last)
    shown = [at_peak.display.get(row, row) for row in at_peak.held.values()] if peak else []
    rows_of_spans = [(row, *span) for row, span in whole.spans.items() if row in whole.seen]
    spans = np.array(rows_of_spans, np.int64).reshape(-1, 3)
    return Curve(
        sizes, unpadded, [*events.instruction.tolist(), -1], peak, unpadded_peak,
        max(position, 0), [(row, columns[0][row]) for row in shown], spans, spans,
    )  # fmt: skip


def _items(column: Int64Array) -> list[int]:
    result: list[int] = column.tolist()
    return result
