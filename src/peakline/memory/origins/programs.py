"""Which compiled program requested a buffer, where events say so.

XLA's runtimes run a program within an event of a host thread
(``PjRtStreamExecutorLoadedExecutable::EnqueueExecution``, ``GpuExecutable::ExecuteAsyncOnStream``,
``TfrtCpuExecutable::ExecuteHelper``). Such an event, or one within it on the same thread, has the
program's name or id as a stat. A record of the same thread within the event is of that program.
That something ran on another thread at the same time says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.over_time.live import MemoryRecords
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import Trace, trace_of

_EXECUTION = re.compile(
    r"(?:PjRt|Pjrt|Tfrt|Gpu|Cpu|Tpu|Nanort)\w*Executable::(?:Execute|Enqueue|Run)\w*"
)
_NAMES, _ID = ("hlo_module", "module_name"), "program_id"


@dataclass(frozen=True, eq=False)
class ProgramRuns:
    """The executions of programs on threads of the host, none within another.

    Per run its line (``line_id``), start and end in ps, and the program: ``programs[code]``.
    ``events`` are the names of the events that are such runs.
    """

    line: Int64Array
    start: Int64Array
    end: Int64Array
    code: Int64Array
    programs: Sequence[str]
    events: tuple[str, ...]

    def of(self, line: Int64Array, time: Int64Array) -> Int64Array:
        """The program (a place in ``programs``) in whose run each moment of a line is, else -1."""
        result = np.full(time.size, -1, np.int64)
        for number in np.intersect1d(self.line, line).tolist():
            runs, own = np.flatnonzero(self.line == number), np.flatnonzero(line == number)
            at = np.searchsorted(self.start[runs], time[own], "right") - 1
            run = runs[np.maximum(at, 0)]
            inside = (at >= 0) & (time[own] <= self.end[run])
            result[own[inside]] = self.code[run[inside]]
        return result


@once
def program_runs(profile: Profile) -> ProgramRuns | None:
    """The runs of programs that host threads have; None where no event names a program.

    Raises InputError when the profile cannot be read.
    """
    if "events" not in profile.tables:
        return None
    trace = trace_of(profile)
    runs = np.flatnonzero(trace.name.per_row(lambda text: bool(_EXECUTION.match(text)), np.bool_))
    if not runs.size:
        return None
    named, codes, programs = _named(profile, trace)
    order = np.argsort(named, kind="stable")
    named, codes = named[order], codes[order]
    own = trace.lines_of(runs)
    nests = np.array([line.nests for line in trace.lines], np.bool_)
    # Events of a line are in order of their start, so what lies within a run follows it.
    bounds = np.searchsorted(named, runs)
    behind = _last_within(trace, runs, own)
    ends = np.searchsorted(named, behind, "right")
    change = np.cumsum(np.append(True, codes[1:] != codes[:-1])) if codes.size else codes
    has = np.flatnonzero((ends > bounds) & nests[own])
    has = has[change[ends[has] - 1] == change[bounds[has]]]
    if not has.size:
        return None
    runs, own, result = runs[has], own[has], codes[bounds[has]]
    outer = _outermost(trace, runs, own)
    runs, own, result = runs[outer], own[outer], result[outer]
    lines = np.array([line.line_id for line in trace.lines], np.int64)[own]
    texts = sorted({trace.name[event] or "" for event in runs.tolist()})
    return ProgramRuns(lines, trace.start[runs], trace.end[runs], result, programs, tuple(texts))


def _last_within(trace: Trace, runs: IntpArray, own: Int64Array) -> Int64Array:
    """The last event of its line that begins before each run ends."""
    result = np.zeros(runs.size, np.int64)
    for line in np.unique(own).tolist():
        mine = np.flatnonzero(own == line)
        part = trace.lines[line].events
        after = np.searchsorted(trace.start[part], trace.end[runs[mine]], "left")
        result[mine] = np.maximum(part.start + after - 1, runs[mine])
    return result


def _outermost(trace: Trace, runs: IntpArray, own: Int64Array) -> IntpArray:
    """Of runs within each other, which all have the same program, the outermost; ascending."""
    parts = []
    for line in np.unique(own).tolist():
        mine = np.flatnonzero(own == line)
        reach = np.maximum.accumulate(trace.end[runs[mine]])
        start = trace.start[runs[mine]]
        parts.append(mine[np.append(True, start[1:] >= reach[:-1])])
    return np.sort(np.concatenate(parts))


def _named(profile: Profile, trace: Trace) -> tuple[Int64Array, Int64Array, list[str]]:
    """The events that name a program, which one, and how programs are listed."""
    stats = profile.typed_stats(frozenset((*_NAMES, _ID)))
    known = _labels(profile)
    keys, texts = stats.names("name"), stats.names("text")
    event, number = stats.array("event_id"), stats.array("integer")
    is_id = keys.codes == keys.code_of(_ID)
    by_number = np.flatnonzero(is_id & stats.is_valid("integer"))
    by_text = np.flatnonzero((texts.codes >= 0) & ~stats.is_valid("integer"))
    rows = np.unique(event[np.append(by_number, by_text)])
    codes = np.full(rows.size, -1, np.int64)
    programs: dict[str, int] = {}

    def say(of: IntpArray, values: Sequence[tuple[int | str, str]], place: IntpArray) -> None:
        """``values`` are keys of programs and what to list without them; ``place`` per row."""
        labels = [known.get(key, text) for key, text in values]
        given = [programs.setdefault(label, len(programs)) if label else -1 for label in labels]
        result = np.array([*given, -1], np.int64)[place]
        codes[np.searchsorted(rows, event[of])[result >= 0]] = result[result >= 0]

    values, place = np.unique(number[by_number], return_inverse=True)
    ids = [one % 2**64 for one in values.tolist()]
    # A number that no program has is outdone by a name, and a name by a number that one has.
    say(by_number, [(one, "" if one in known else f"({one})") for one in ids], place)
    used, place = np.unique(texts.codes[by_text], return_inverse=True)
    names = [texts.values[code] for code in used.tolist()]
    say(by_text, [(int(one) if one.isdecimal() else one, one) for one in names], place)
    say(by_number, [(one, "") for one in ids], np.unique(number[by_number], return_inverse=True)[1])
    places = trace.places(rows)
    chosen = (places >= 0) & (codes >= 0)
    return places[chosen], codes[chosen], list(programs)


def _labels(profile: Profile) -> dict[int | str, str]:
    """How each program is listed, by its number, and by its name where no other has it."""
    programs = profile.programs()
    result: dict[int | str, str] = {}
    several: set[str] = set()
    if programs is None:
        return result
    for number in range(len(programs)):
        name, label = programs.name(number), programs.label(number)
        if (program_id := programs.program_id(number)) is not None:
            result.setdefault(program_id, label)
        if name in result:
            several.add(name)
        result[name] = label
    for name in several:
        del result[name]
    return result


def programs_of(
    profile: Profile, records: MemoryRecords, rows: IntpArray
) -> tuple[Int64Array, Sequence[str], tuple[str, ...]] | None:
    """Per record of an allocation the program that requested it, a place in the texts, -1 for none;
    and the names of the events that say it. None where no record lies in a program's run.
    """
    events = records.events
    if not (runs := program_runs(profile)):
        return None
    line = np.where(events.is_valid("line_id")[rows], events.array("line_id")[rows], -1)
    result = runs.of(line.astype(np.int64), events.array("time_ps")[rows])
    return (result, runs.programs, runs.events) if (result >= 0).any() else None
