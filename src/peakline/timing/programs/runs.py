"""When the compiled programs of a profile ran, on which device, and which outlast their steps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.joins import positions, summed
from peakline.tables.once import once
from peakline.timing.ops.eager import called, in_windows
from peakline.timing.programs.compiled import module_name
from peakline.timing.steps.facts import StepFacts
from peakline.trace.events import trace_of
from peakline.trace.intervals import covered, union

_STATS = frozenset(("program_id", "run_id", "device_ordinal", "hlo_op"))
_LINE = "XLA Modules"
_LABEL = re.compile(r".*\((\d{1,20})\)", re.DOTALL)
_UNKNOWN = -1
"""The device of an event that does not say which it was."""
_EVENTS = frozenset(("line_id", "name", "start_ps", "duration_ps"))


@once
def program_runs(profile: Profile) -> Columns:
    """One row per run: ``program`` (its number in ``hlo_modules``), ``device``, ``start_ps``,
    ``end_ps``, in order of time. Runs of programs that the profile does not hold are left out.

    Raises InputError when the profile cannot be read.
    """
    programs = profile.programs()
    numbers: dict[int, int] = {}
    for number in range(len(programs or ())):
        program_id = programs.program_id(number) if programs is not None else None
        if program_id is not None:
            numbers.setdefault(program_id, number)
    if not numbers or not profile.has_rows("events"):
        return _rows(np.zeros(0, np.int64), Names.encode([]), *np.zeros((2, 0), np.int64))
    events = profile.columns("events", _EVENTS)
    lines = profile.columns("lines")
    listed = lines.names("name").per_row(_LINE.__eq__, np.bool_)
    on_line = listed[events.array("line_id")]
    if on_line.any():
        return _listed(events.take(on_line), _devices(profile), numbers)
    return _by_events(profile, events, numbers)


@once
def run_totals(profile: Profile) -> tuple[Int64Array, Int64Array]:
    """Per program of the profile how often it ran, and the time of all its runs in ps.

    Raises InputError when the profile cannot be read.
    """
    runs, count = program_runs(profile), len(profile.programs() or ())
    program, lasted = runs.array("program"), runs.array("end_ps") - runs.array("start_ps")
    return summed(program, np.ones(program.size, np.int64), count), summed(program, lasted, count)


def _devices(profile: Profile) -> Names:
    """Per line the device whose it is; null for a line of the host."""
    planes, lines = profile.columns("planes"), profile.columns("lines")
    kinds = planes.names("kind").to_list()
    names = [
        (name or "").removeprefix("/device:") if kind == "device" else None
        for name, kind in zip(planes.names("name").to_list(), kinds, strict=True)
    ]
    return Names.encode([names[plane] for plane in lines.array("plane_id").tolist()])


def _listed(runs: Columns, devices: Names, numbers: dict[int, int]) -> Columns:
    """The runs that events of their own stand for: they are called as XProf lists a program."""

    def number(name: str) -> int:
        label = _LABEL.fullmatch(name)
        return numbers.get(int(label[1]), -1) if label else -1

    program = runs.names("name").per_row(number, np.int64, -1)
    known = runs.take(program >= 0)
    start = known.array("start_ps")
    device = devices.take(known.array("line_id"))
    return _rows(program[program >= 0], device, start, start + known.array("duration_ps"))


def _by_events(profile: Profile, events: Columns, numbers: dict[int, int]) -> Columns:
    """The runs that the events of ops make up."""
    stats = profile.typed_stats(_STATS)
    name, owner = stats.names("name"), stats.array("event_id")

    def of(wanted: str) -> tuple[Int64Array, Int64Array]:
        rows = np.flatnonzero(name.codes == name.code_of(wanted))
        return owner[rows], rows

    event, at = of("program_id")
    ids = stats.array("integer")[at]
    known, code = np.unique(ids, return_inverse=True)
    program = np.array([numbers.get(one % 2**64, -1) for one in known.tolist()], np.int64)[code]
    line = events.array("line_id")[event]
    device = _devices(profile).codes[line].astype(np.int64)
    run_events, at = of("run_id")
    place = positions(run_events, event)
    run = np.append(stats.array("integer")[at], 0)[place]
    if (place >= 0).any():
        # On a CPU the event says which of its devices it was.
        ordinals, at = of("device_ordinal")
        ordinal = np.append(stats.array("integer")[at], -1)[positions(ordinals, event)]
        ordinal = np.clip(ordinal, -1, np.iinfo(np.int32).max - 2)
        device = np.where(device < 0, -2 - ordinal, device)
        # What a host does to launch a run is no run of its own where devices have planes.
    keep = (program >= 0) & (events.array("duration_ps")[event] >= 0)
    if (device[keep] >= 0).any():
        keep &= device >= 0
    start = events.array("start_ps")[event]
    end = start + events.array("duration_ps")[event]
    numbered = place >= 0
    # Where the runs of a program on a device have numbers, what has none is no run of its own.
    key = program * (np.iinfo(np.int32).max + 1) + device
    covered = np.isin(key, key[keep & numbered])
    covered |= (device == _UNKNOWN) & np.isin(program, program[keep & numbered])
    keep &= numbered | ~covered
    if (keep & ~numbered).any():
        alone = _unnumbered(profile, event, program, device, start, keep & ~numbered)
        run = np.where(numbered, run, alone)
    rows = np.flatnonzero(keep)
    _, first, group = np.unique(
        np.stack([program[rows], device[rows], run[rows]]), axis=1,
        return_index=True, return_inverse=True,
    )  # fmt: skip
    begin = np.full(first.size, np.iinfo(np.int64).max)
    finish = np.full(first.size, np.iinfo(np.int64).min)
    np.minimum.at(begin, group.ravel(), start[rows])
    np.maximum.at(finish, group.ravel(), end[rows])
    devices = _devices(profile).values
    labels = [
        devices[one] if one >= 0 else ("" if one == -1 else f"CPU:{-2 - one}")
        for one in device[rows[first]].tolist()
    ]
    return _rows(program[rows[first]], Names.encode(labels), begin, finish)


def _unnumbered(
    profile: Profile, event: Int64Array, program: Int64Array, device: Int64Array,
    start: Int64Array, keep: BoolArray,
) -> Int64Array:  # fmt: skip
    """A number per run, of events that do not have one."""
    stats = profile.typed_stats(frozenset(("hlo_op",)))
    texts = stats.names("text")
    op = np.append(texts.codes, np.int32(-1))[positions(stats.array("event_id"), event)]
    outside = _outside_of_loops(profile, np.unique(program[keep]).tolist())
    run = np.zeros(event.size, np.int64)
    for one in np.unique(device[keep]).tolist():
        rows = np.flatnonzero(keep & (device == one))
        rows = rows[np.argsort(start[rows], kind="stable")]
        number, seen, last = 0, set[int](), (-1, -1)
        for row, what, instruction in zip(
            rows.tolist(), program[rows].tolist(), op[rows].tolist(), strict=True
        ):
            here = what, instruction
            if what != last[0] or (
                here != last
                and instruction in seen
                and texts.values[instruction].rsplit("::", 1)[-1] in outside[what]
            ):
                number, seen = number + 1, set()
            seen.add(instruction)
            run[row], last = number, here
    return run


def _outside_of_loops(profile: Profile, numbers: list[int]) -> dict[int, frozenset[str]]:
    """Of each program the names of the instructions that run once: those of its entry."""
    programs = profile.programs()
    result = dict.fromkeys(numbers, frozenset[str]())
    for number in numbers:
        if programs is None:
            break
        computations = programs.read(number, "hlo_computations")
        entry = np.flatnonzero(computations.array("is_entry"))
        listed = programs.read(number, "hlo_instructions", {"name", "computation_id"})
        names = listed.take(np.isin(listed.array("computation_id"), entry)).names("name")
        result[number] = frozenset(name for name in names.to_list() if name)
    return result


def _rows(program: Int64Array, device: Names, start: Int64Array, end: Int64Array) -> Columns:
    order = np.argsort(start, kind="stable")
    return Columns({"program": program, "device": device, "start_ps": start, "end_ps": end}).take(
        order
    )


_LAUNCH = "PjitFunction("
_FROM_STEPS = 0.75
"""A function is the steps' when they have so many of its calls."""


@dataclass(frozen=True)
class LateRuns:
    """What ``programs``, by name, do: ``work_ps`` is when one of them runs or more, ``late_ps`` how
    much of that is outside of the steps. The programs that ran most often come first.
    """

    programs: tuple[str, ...]
    work_ps: int
    late_ps: int


def late_runs_of(profile: Profile, facts: StepFacts) -> LateRuns | None:
    """The runs of what the steps call, on the host; None with a device, and where none ran.

    Raises InputError when the profile cannot be read.
    """
    programs = profile.programs()
    if facts.has_device or facts.is_inferred or not facts.rows or not programs:
        return None
    starts = facts.part("start_ps")
    order = np.argsort(starts, kind="stable")
    begin, end = starts[order], np.maximum.accumulate(facts.part("end_ps")[order])
    called_here = _called(profile, begin, end)
    names = [module_name(programs.name(k).partition("(")[0]) for k in range(len(programs))]
    runs = program_runs(profile)
    own = np.isin(runs.array("program"), [k for k, name in enumerate(names) if name in called_here])
    program = runs.array("program")[own]
    start, until = runs.array("start_ps")[own], runs.array("end_ps")[own]
    if not program.size:
        return None
    busy = union(start, until)
    work = int((busy[1] - busy[0]).sum())
    inside = int(covered(busy, *union(begin, end)).sum())
    most = [names[k] for k, _ in Counter(program.tolist()).most_common()]
    return LateRuns(tuple(dict.fromkeys(most)), work, work - inside)


def _called(profile: Profile, begin: Int64Array, end: Int64Array) -> set[str]:
    """The names of the programs that the steps call, and hardly anything else does."""
    trace = trace_of(profile)
    names = trace.name.values
    # One more for events without a name, whose code is -1.
    is_call = np.array([*(name.startswith(_LAUNCH) for name in names), False], np.bool_)
    calls = np.flatnonzero(is_call[trace.name.codes])
    codes, within = trace.name.codes[calls], in_windows(trace.start[calls], begin, end)
    whole, inside = Counter[str](), Counter[str]()
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        whole[module_name("jit_" + called(names[code]))] += int(count)
    for code, count in zip(*np.unique(codes[within], return_counts=True), strict=True):
        inside[module_name("jit_" + called(names[code]))] += int(count)
    return {name for name, count in inside.items() if count >= _FROM_STEPS * whole[name]}
