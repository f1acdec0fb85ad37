"""What a program's memory is made of while it runs: layers over the places of its schedule, by HLO
op, by the framework's scope or by line of the source; and its peak as a tree of them.

A layer is what the values of some instructions hold. Of values that share memory the one that was
put there last counts, so that the layers of a place add up to the bytes that are live at it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.hlo.memory import Heap, ProgramMemory, memory_of
from peakline.hlo.schedule import event_places, schedule_of
from peakline.memory.crossings import live_sums
from peakline.memory.over_time.trees import Scope, stack_tree
from peakline.memory.signatures import scope_of
from peakline.tables import Columns, Profile
from peakline.tables.joins import summed

BY = ("opcode", "scope", "source")
NO_NAME = {"opcode": "(no instruction)", "scope": "(no scope)", "source": "(no source line)"}
MOST_LAYERS = 12
_WANTED = frozenset(("name", "opcode", "op_name", "source_file", "source_line"))


@dataclass(frozen=True)
class ProgramLayer:
    """One layer: a group, or the ``groups`` smaller ones together; ``peak_bytes`` at the peak."""

    kind: str
    key: str
    groups: int
    peak_bytes: int


@dataclass(frozen=True, eq=False)
class ProgramLayers:
    """``places`` are those of the schedule that are drawn, ascending: of each stretch the one with
    most in memory. ``bytes`` has shape (layers, places), the lowest layer first.
    """

    places: IntpArray
    layers: tuple[ProgramLayer, ...]
    bytes: Int64Array


def program_layers(profile: Profile, number: int, by: str, width: int) -> ProgramLayers | None:
    """The layers of a program, by one of `BY`, at no more than ``width`` places.

    None where what is live at a place is not known value by value: of programs without a buffer
    assignment the order alone gives sums. Raises IndexError where there is no such program.
    """
    memory, schedule = memory_of(profile, number), schedule_of(profile, number)
    if memory.need is not None or not schedule.live_bytes.size:
        return None
    names = instruction_names(instructions_of(profile, number), by)
    # What names no instruction comes last, as -1 finds it.
    texts = list(dict.fromkeys([NO_NAME[by], *names]))
    number_of = {text: place for place, text in enumerate(texts)}
    group = np.array([*(number_of[one] for one in names), 0], np.int64)
    places = _places(schedule.live_bytes, width, schedule.peak)
    lasting = summed(group[memory.lasting.instruction], memory.lasting.bytes, len(texts))
    result = np.repeat(lasting[:, None], places.size, axis=1)
    for heap in memory.heaps:
        result += _heap_layers(heap, memory, places, group, len(texts))
    at_peak = result[:, np.searchsorted(places, schedule.peak)]
    largest = np.lexsort((np.arange(at_peak.size), -result.max(axis=1), -at_peak))
    chosen = np.sort(largest[result.max(axis=1)[largest] > 0][:MOST_LAYERS])
    rest = np.setdiff1d(np.flatnonzero(result.any(axis=1)), chosen)
    layers = [ProgramLayer("group", texts[one], 1, int(at_peak[one])) for one in chosen.tolist()]
    values = [result[chosen]]
    if rest.size:
        layers.append(ProgramLayer("rest", "", int(rest.size), int(at_peak[rest].sum())))
        values.append(result[rest].sum(axis=0)[None, :])
    return ProgramLayers(places, tuple(layers), np.vstack(values))


def _places(live: Int64Array, width: int, peak: int) -> IntpArray:
    """Of each of at most ``width`` stretches the first place with most in memory; the peak's."""
    count = min(live.size, max(width, 1))
    edges = np.arange(count + 1) * live.size // count
    result = [
        begin + int(live[begin:end].argmax())
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    return np.unique([*result, peak])


def _heap_layers(
    heap: Heap, memory: ProgramMemory, places: IntpArray, group: Int64Array, groups: int
) -> Int64Array:
    """Shape (groups, places): what the values in a heap hold when it holds most at each place."""
    at = event_places(heap, memory)
    first, past = (np.searchsorted(at, places, side) for side in ("left", "right"))
    events = [
        begin + int(heap.curve[begin:end].argmax()) if end > begin else begin - 1
        for begin, end in zip(first.tolist(), past.tolist(), strict=True)
    ]
    moments, uses = np.array(events, np.int64), heap.uses
    shown = uses.blocks[:, 0] >= 0
    begin, end = uses.blocks[shown].T
    size = heap.size[uses.root[shown]]
    own = group[memory.definer[uses.value[shown]]]
    first, until = np.searchsorted(moments, begin), np.searchsorted(moments, end)
    return live_sums(own, first, until, size, groups, places.size)


def instructions_of(profile: Profile, number: int) -> Columns:
    """The instructions of a program, with what they may be put together by."""
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    return programs.read(number, "hlo_instructions", _WANTED)


def instruction_names(table: Columns, by: str) -> list[str]:
    """What each instruction is put together with others by."""
    if by == "opcode":
        return [text or NO_NAME[by] for text in table.names("opcode").to_list()]
    if by == "scope":
        return [scope_of(text or "") or NO_NAME[by] for text in table.names("op_name").to_list()]
    return [
        f"{file}:{line}" if file else NO_NAME[by] for file, line in _sources(table)
    ]  # fmt: skip


def _sources(table: Columns) -> list[tuple[str, int]]:
    return [(file or "", line) for file, line in table.each("source_file", "source_line")]


def peak_tree(profile: Profile, number: int, by: str, label: str) -> Scope | None:
    """What a program holds at its peak as a tree, by one of `BY`; its leaves are instructions."""
    memory, table = memory_of(profile, number), instructions_of(profile, number)
    live = memory.live_set
    totals = summed(live.instruction + 1, live.bytes, table.rows + 1)
    counts = np.bincount(live.instruction + 1, minlength=table.rows + 1)
    names, groups = table.names("name").to_list(), instruction_names(table, by)
    op_names, sources = table.names("op_name").to_list(), _sources(table)
    stacks = []
    for place in np.flatnonzero(totals).tolist():
        row = place - 1
        if row < 0:
            frames = [NO_NAME[by]]
        elif by == "scope" and op_names[row]:
            frames = [*str(op_names[row]).split("/"), names[row] or ""]
        elif by == "source" and sources[row][0]:
            frames = [sources[row][0], groups[row], names[row] or ""]
        else:
            frames = [groups[row], names[row] or ""]
        stacks.append((frames, int(totals[place]), int(counts[place])))
    return stack_tree(label, stacks)
