"""A program in the order in which it runs, with the bytes that are live at each instruction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.hlo.liveness import Need
from peakline.hlo.memory import Heap, ProgramMemory, memory_of
from peakline.kernels.heap_layout import FREE
from peakline.tables import Profile
from peakline.tables.once import once


@dataclass(frozen=True, eq=False)
class Schedule:
    """``rows`` are the instructions in the order of the program, those of loops once, without what
    is fused or applied; ``live_bytes`` what each finds in memory while it runs, empty where that is
    not known. ``peak`` is the place of the most, -1 without any; ``lasting_bytes`` is the part of
    it that is live all the time, such as parameters and constants. ``found_by`` says how it is
    known, as in ``hlo_modules``; ``is_given`` whether the program says its order.
    """

    rows: Int64Array
    live_bytes: Int64Array
    peak: int
    lasting_bytes: int
    found_by: str
    is_given: bool


@once
def schedule_of(profile: Profile, number: int) -> Schedule:
    """The schedule of one program. Raises IndexError where the profile has no such program."""
    memory = memory_of(profile, number)
    rows = np.flatnonzero(memory.order >= 0)
    rows = rows[np.argsort(memory.order[rows])]
    is_given = bool(memory.module.array("is_scheduled")[0])
    if not memory.is_known or not rows.size:
        return Schedule(rows, np.zeros(0, np.int64), -1, 0, "", is_given)
    if memory.need is not None:
        live, lasting = _computed(memory, memory.need, rows, profile, number)
    else:
        live, lasting = _assigned(memory, rows)
    return Schedule(rows, live, int(live.argmax()), lasting, memory.found_by, is_given)


def _assigned(memory: ProgramMemory, rows: Int64Array) -> tuple[Int64Array, int]:
    """By the simulated heaps: what is live in each, and what lasts beside them."""
    heaps = sum(heap.peak for heap in memory.heaps)
    lasting = memory.peak_bytes - heaps
    live = np.full(rows.size, lasting)
    for heap in memory.heaps:
        live += _curve(heap, memory, rows.size)
    return live, lasting


def event_places(heap: Heap, memory: ProgramMemory) -> Int64Array:
    """Per event of a heap the place in the program that it belongs to; ascending.

    What begins is named by the instruction that makes it; the name of an end is that of the maker,
    too (``HeapSimulator::RunComputation``). An end therefore counts where something began last:
    between there and the next beginning nothing says when it was.
    """
    names = memory.instructions.names("name").codes
    texts = heap.events.names("instruction").codes
    place = np.full(max(names.max(initial=-1), texts.max(initial=-1)) + 2, -1)
    place[names[::-1]] = memory.order[::-1]
    place[-1] = -1
    at = np.where(heap.kind == FREE, -1, place[texts])
    result: Int64Array = np.maximum.accumulate(np.where(at < 0, 0, at)) if at.size else at
    return result


def _curve(heap: Heap, memory: ProgramMemory, size: int) -> Int64Array:
    """The most that is live in a heap at each place of the program."""
    at = event_places(heap, memory)
    result = np.zeros(size, np.int64)
    np.maximum.at(result, at, heap.curve)
    last = np.full(size, -1)
    last[at] = np.arange(at.size)
    carried = np.append(heap.curve, 0)[np.maximum.accumulate(last)]
    before = np.append(0, carried[:-1]) if size else carried
    return np.maximum(result, np.where(last < 0, before, result))


def _computed(
    memory: ProgramMemory, need: Need, rows: Int64Array, profile: Profile, number: int
) -> tuple[Int64Array, int]:
    """By the order alone: what a called computation needs comes on top of what its caller does."""
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    lasting = sum(value.bytes for value in (*need.parameters, *need.constants))
    calls = programs.read(number, "hlo_calls")
    computations = programs.read(number, "hlo_computations", frozenset())
    called: dict[int, list[int]] = {}
    for caller, callee in calls.each("instruction_id", "computation_id"):
        called.setdefault(caller, []).append(callee)
    result = np.zeros(memory.order.size, np.int64)
    waiting = [(int(np.flatnonzero(computations.array("is_entry"))[0]), lasting)]
    seen: set[int] = set()
    while waiting:
        computation, base = waiting.pop()
        if computation in seen or computation not in need.curve:
            continue
        seen.add(computation)
        inside, curve = need.curve[computation]
        result[inside] = base + curve
        for row, live in zip(inside.tolist(), curve.tolist(), strict=True):
            waiting += [(callee, base + live) for callee in called.get(row, ())]
    return result[rows], lasting
