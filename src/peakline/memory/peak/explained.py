"""The peak of every allocator, explained to the last byte.

At the peak, memory in use is made of

* live buffers: allocated inside the profile and not yet freed, whatever step they come from;
* ``(before profile)``: what was in use before the first record, less the deallocations since
  then that found no live buffer (they freed memory from before the profile), and what a source
  found to be there without knowing who requested it;
* ``(reserved)``: bytes the allocator reported as reserved outside its heap;
* ``(unattributed)``: the signed rest, such as allocations that carry neither id nor address.
  It is negative when the records name more than the allocator says is in use.

Their bytes add up to the peak exactly. An allocator that does not report its bytes in use is
measured by the running sum of its live buffers; then only those rows occur.

A runtime that frees memory while a device still works on it logs the deallocation as deferred,
and once more when the work is done (log_memory.proto). Current TensorFlow hands the memory back
at the first of the two (``gpu_device.cc``), older ones at the second. `find_peaks` takes the
first; `find_deferred` adds up what would be in use if the second counted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, IntpArray
from peakline.deadline import checked
from peakline.errors import NotFoundError
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.lifetimes import Lifetimes, match_lifetimes
from peakline.memory.usage import (
    Usage,
    buffer_bytes,
    capacity_at,
    counts_of,
    fragmentation_at,
    measure,
    number_at,
    was_there,
)
from peakline.shown import Brief, several
from peakline.suggest import there_is
from peakline.tables.columns import Columns
from peakline.tables.joins import summed
from peakline.text import allocator_text, counted, size_text, time_text

BEFORE_PROFILE = "(before profile)"
RESERVED = "(reserved)"
UNATTRIBUTED = "(unattributed)"
_LABELLED = {BEFORE_PROFILE, RESERVED, UNATTRIBUTED, "(no op)"}

_LABELS = ("op", "region_type", "data_type", "shape")
DESCRIBED = ("category", "module", "function", "input_shape")
"""What only some formats say of a buffer, which is no column of their records."""

_found: WeakKeyDictionary[Lifetimes, dict[tuple[int, int], AllocatorPeak]] = WeakKeyDictionary()
"""The peaks of whole profiles, by the allocator's number and the peak's record: a profile of very
many ops takes long to explain, and moments near the peak need the peak again."""


@dataclass(frozen=True, slots=True, repr=False)
class PeakBuffer(Brief):
    """Buffers live at the peak that share op, region, type, shape and step of allocation, and what
    their category is, which module and function made them, and of what shape the op's input was.

    ``bytes`` is the sum of their allocated bytes, ``count`` how many they are: 0 for the three
    rows without a real op. What is not known is the empty string, or None for the step.
    """

    op: str
    region_type: str
    data_type: str
    shape: str
    bytes: int
    count: int
    start_step: int | None
    category: str = ""
    module: str = ""
    function: str = ""
    input_shape: str = ""

    @property
    def described(self) -> tuple[str, ...]:
        """What `DESCRIBED` names."""
        return self.category, self.module, self.function, self.input_shape

    def _headline(self) -> str:
        form = " ".join(part for part in (self.data_type, self.shape) if part)
        return f"{size_text(self.bytes)}, {self.op or '(no op)'} {form}".rstrip()


class Descriptions(Protocol):
    """What is known of buffers besides the columns of their records."""

    def of(self, rows: IntpArray) -> list[tuple[AnyArray, list[str]]]:
        """For each of `DESCRIBED` a number for each of the records ``rows``, and what it means."""
        ...


@dataclass(frozen=True, repr=False)
class AllocatorPeak(Brief):
    """One allocator's memory. Times are picoseconds on the profile's clock, sizes bytes.

    The fields up to ``peak_buffers`` are those of ``peakline memory --json``. ``capacity_bytes`` is
    the most its memory may hold, ``pool_bytes`` what its pool had of the device at the peak, in use
    or free; each None where no record says it. ``reported`` says whether the allocator reported its
    bytes in use; ``double_allocations`` counts allocations under a key that was live (the earlier
    buffer is taken as ended); ``unexplained_deallocations`` the unmatched ones that memory from
    before the profile cannot explain.
    """

    allocator: str
    capacity_bytes: int | None
    pool_bytes: int | None
    peak_bytes: int
    peak_time_ps: int
    peak_step: int | None
    lifetime_peak_bytes: int | None
    fragmentation_at_peak: float | None
    allocations: int
    deallocations: int
    unmatched_deallocations: int
    untracked_allocations: int
    live_at_end_bytes: int
    peak_buffers: tuple[PeakBuffer, ...]
    reported: bool
    double_allocations: int
    unexplained_deallocations: int

    def __post_init__(self) -> None:
        several(self, "peak_buffers")

    def as_json(self) -> dict[str, object]:
        """The shape of one of ``allocators`` in ``peakline memory --json``.

        Columns of `DESCRIBED` that no buffer has are left out, and ``categories`` with the first.
        """
        shape = {f.name: getattr(self, f.name) for f in fields(self)[:_JSON_FIELDS]}
        unknown = {
            name for name in DESCRIBED if not any(getattr(one, name) for one in self.peak_buffers)
        }
        shape["peak_buffers"] = [
            {f.name: getattr(buffer, f.name) for f in fields(buffer) if f.name not in unknown}
            for buffer in self.peak_buffers
        ]
        if categories := self.categories:
            whole = max(self.peak_bytes, 1)
            shape["categories"] = [
                {"category": name, "bytes": size, "share": round(size / whole, 6)}
                for name, size in categories.items()
            ]
        return shape

    @property
    def categories(self) -> dict[str, int]:
        """The bytes of each category, most first, with those of none as the empty one; nothing
        where no buffer has one.
        """
        result: dict[str, int] = {}
        for buffer in self.peak_buffers:
            result[buffer.category] = result.get(buffer.category, 0) + buffer.bytes
        order = sorted(result.items(), key=lambda one: (not one[0], -one[1], one[0]))
        return dict(order) if any(result) else {}

    @property
    def op_bytes(self) -> dict[str, int]:
        """The bytes of each op, with those of none as the empty one; what stands for memory
        without an op, as `BEFORE_PROFILE` does, is in it by its label.
        """
        result: dict[str, int] = {}
        for buffer in self.peak_buffers:
            result[buffer.op] = result.get(buffer.op, 0) + buffer.bytes
        return result

    @property
    def largest_op(self) -> tuple[str, int] | None:
        """The op with most bytes, and how many; None where no op is named."""
        named = (one for one in self.op_bytes.items() if one[0] and one[0] not in _LABELLED)
        return max(named, key=lambda one: (one[1], one[0]), default=None)

    def _headline(self) -> str:
        return (
            f"{allocator_text(self.allocator)}, peak {size_text(self.peak_bytes)} at "
            f"{time_text(self.peak_time_ps)}, {counted(len(self.peak_buffers), 'kind')} of buffers"
        )


_JSON_FIELDS = 1 + [f.name for f in fields(AllocatorPeak)].index("peak_buffers")


def find_peaks(
    events: Columns,
    *,
    allocator: str | None = None,
    eligible: BoolArray | None = None,
    lifetimes: Lifetimes | None = None,
    descriptions: Descriptions | None = None,
) -> tuple[AllocatorPeak, ...]:
    """The peak of every allocator of ``allocator_events`` (in time order), by allocator name.

    ``allocator`` selects the named one. ``eligible`` marks the records that may be the peak
    (default: all); an allocator without one is left out, and the counts stay those of the whole
    profile. ``lifetimes`` are those of `match_lifetimes` where they are known already;
    ``descriptions`` set rows apart further. Raises NotFoundError for an allocator without records.
    """
    if lifetimes is None:
        lifetimes = match_lifetimes(events)
    if allocator is not None and allocator not in lifetimes.allocators:
        raise NotFoundError(
            f"no allocator {allocator!r} in the profile{there_is(allocator, lifetimes.allocators)}"
        )
    usages = measure(events, lifetimes, eligible)
    moments = np.array([usage.peak_row for usage in usages], np.int64)
    if allocator is not None:
        moments[np.arange(moments.size) != lifetimes.allocators.index(allocator)] = -1
    known = _found.get(lifetimes, {})
    wanted = np.flatnonzero(moments >= 0).tolist()
    keys = [(number, int(moments[number])) for number in wanted]
    if all(key in known for key in keys):
        return tuple(known[key] for key in keys)
    groups = _live_groups(events, lifetimes, moments, descriptions)
    # Rows that stand for memory from before the profile are no records of the file.
    made_up = was_there(events) & (lifetimes.kind == ALLOCATION)
    older = np.bincount(lifetimes.allocator[made_up], minlength=len(usages)).tolist()
    usages = [
        replace(usage, allocations=usage.allocations - count)
        for usage, count in zip(usages, older, strict=True)
    ]
    peaks = tuple(
        _explain(events, lifetimes.allocators[number], usages[number], groups[number])
        for number in wanted
    )
    if eligible is None:
        _found.setdefault(lifetimes, {}).update(zip(keys, peaks, strict=True))
    return peaks


def _explain(events: Columns, name: str, usage: Usage, buffers: list[PeakBuffer]) -> AllocatorPeak:
    row = usage.peak_row
    capacity = None
    if usage.reported:
        reserved = number_at(events, "reserved_bytes", row) or 0
        capacity = capacity_at(events, row)
        before = max(usage.before - usage.unmatched_bytes_at_peak, 0)
        rest = usage.peak - reserved - before - sum(buffer.bytes for buffer in buffers)
        before += sum(buffer.bytes for buffer in buffers if buffer.op == BEFORE_PROFILE)
        buffers = [buffer for buffer in buffers if buffer.op != BEFORE_PROFILE]
        special = {BEFORE_PROFILE: before, UNATTRIBUTED: rest, RESERVED: reserved}
        buffers = buffers + [
            PeakBuffer(op, "", "", "", size, 0, None) for op, size in special.items() if size
        ]
    explained = usage.reported and usage.unmatched_bytes <= max(usage.before, 0)
    return AllocatorPeak(
        allocator=name,
        capacity_bytes=capacity,
        pool_bytes=number_at(events, "pool_bytes", row) if usage.reported else None,
        peak_bytes=usage.peak,
        peak_time_ps=int(events.array("time_ps")[row]),
        peak_step=number_at(events, "step_id", row),
        lifetime_peak_bytes=usage.lifetime_peak,
        fragmentation_at_peak=fragmentation_at(events, row),
        allocations=usage.allocations,
        deallocations=usage.deallocations,
        unmatched_deallocations=usage.unmatched,
        untracked_allocations=usage.untracked,
        live_at_end_bytes=usage.live_at_end,
        peak_buffers=tuple(sorted(buffers, key=_order)),
        reported=usage.reported,
        double_allocations=usage.double,
        unexplained_deallocations=0 if explained else usage.unmatched,
    )


def _order(buffer: PeakBuffer) -> tuple[object, ...]:
    step = -1 if buffer.start_step is None else buffer.start_step
    labels = buffer.op, buffer.region_type, buffer.data_type, buffer.shape
    return (-buffer.bytes, *labels, step, *buffer.described)


def _live_groups(
    events: Columns, lifetimes: Lifetimes, moments: Int64Array, descriptions: Descriptions | None
) -> list[list[PeakBuffer]]:
    """Per allocator, the groups of buffers live after record ``moments[allocator]``."""
    rows = lifetimes.live_after(moments)
    # Equal strings may have several codes, and a null label is shown as an empty one.
    labels = [events.names(name).take(rows).grouped() for name in _LABELS]
    more = [] if descriptions is None else descriptions.of(rows)
    known = events.is_valid("step_id")[rows]
    steps, step_codes = np.unique(
        np.where(known, events.array("step_id")[rows], 0), return_inverse=True
    )
    step_codes = np.where(known, step_codes, steps.size)
    ops, (op_codes, op_texts) = np.zeros(rows.size, np.bool_), labels[0]
    if BEFORE_PROFILE in op_texts:
        ops = op_codes == op_texts.index(BEFORE_PROFILE)
    # What was there before the profile is one row, whatever is known of it.
    keys: list[AnyArray] = [lifetimes.allocator[rows], op_codes]
    keys += [np.where(ops, -1, codes) for codes, _ in labels[1:]]
    keys.append(np.where(ops, -1, step_codes))
    keys += [np.where(ops, -1, codes) for codes, _ in more]
    combined = np.zeros(rows.size, np.int64)
    bound = 1
    for key in keys:
        span = int(key.max(initial=-1)) + 2
        if bound * span >= 2**62:
            _, combined = np.unique(combined, return_inverse=True)
            bound = rows.size
        combined = combined * span + key + 1
        bound *= span
    _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    sizes = summed(group, buffer_bytes(events, rows), first.size)
    counted = counts_of(events, rows)
    counts = summed(group, counted, first.size)
    counts[ops[first]] = 0

    result: list[list[PeakBuffer]] = [[] for _ in lifetimes.allocators]
    known_steps: list[int | None] = [*steps.tolist(), None]
    op, region, data_type, shape = ([*texts, ""] for _, texts in labels)
    texts = [[*texts, ""] for _, texts in more]
    columns = (values.tolist() for values in (*(key[first] for key in keys), sizes, counts))
    for owner, a, b, c, d, step, *others, size, count in checked(zip(*columns, strict=True)):
        labelled = op[a], region[b], data_type[c], shape[d]
        described = (values[code] for values, code in zip(texts, others, strict=True))
        row = PeakBuffer(*labelled, size, count, known_steps[step], *described)
        result[owner].append(row)
    return result


@dataclass(frozen=True, repr=False)
class Deferred(Brief):
    """The deferred deallocations of one allocator: how many there are, how many of them were
    completed, and the bytes that the peak may have been.
    """

    count: int
    completed: int
    upper_peak_bytes: int


def find_deferred(
    events: Columns, peak: AllocatorPeak, lifetimes: Lifetimes, eligible: BoolArray | None = None
) -> Deferred | None:
    """What makes the ``peak`` of an allocator uncertain; None where nothing does.

    ``events`` in time order, ``peak`` what `find_peaks` made of them with ``eligible``. The upper
    bound is the largest sum of buffers when each deferred one is held until the record that
    completes it, or to the end where none does. An allocator that reports its bytes in use has no
    bounds, and where both are the same nothing is uncertain.
    """
    deferred = events.array("deferred").astype(np.bool_) & events.is_valid("deferred")
    if peak.reported or not deferred.any():
        return None
    number = lifetimes.allocators.index(peak.allocator)
    late = np.flatnonzero(deferred & (lifetimes.begin >= 0) & (lifetimes.allocator == number))
    if not late.size:
        return None
    upper = _upper_bound(events, lifetimes, number, late, eligible)
    if upper <= peak.peak_bytes:
        return None
    completed = int(events.is_valid("returned_sequence")[late].sum())
    return Deferred(int(late.size), completed, upper)


def _upper_bound(
    events: Columns, lifetimes: Lifetimes, number: int, late: IntpArray, eligible: BoolArray | None
) -> int:
    """The allocator's largest sum when the buffers that ``late`` ends are held for longer."""
    begins = np.flatnonzero((lifetimes.allocator == number) & (lifetimes.kind == ALLOCATION))
    size = buffer_bytes(events, begins)
    end = lifetimes.end[begins].astype(np.int64)
    until = np.where(end < 0, events.rows, end)
    # Where the sequence says that a deferred deallocation took effect, not where it was called.
    place = np.full(events.rows + 1, -1, np.int64)
    known = events.is_valid("returned_sequence")[late]
    returned = events.array("returned_sequence")[late]
    held = np.searchsorted(events.array("sequence"), np.where(known, returned, 0))
    place[late] = np.where(known, np.maximum(held, late), events.rows)
    until = np.where(place[until] >= 0, place[until], until)

    change = np.zeros(events.rows + 1, np.int64)
    np.add.at(change, begins, size)
    np.add.at(change, until, -size)
    total = np.cumsum(change[:-1])
    if eligible is not None:
        total = total[eligible]
    return int(total.max(initial=0))
