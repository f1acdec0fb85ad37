"""How often the instructions of compiled programs ran, and for how long.

Events of CPUs and GPUs name instruction and program by their stats ``hlo_op`` and ``program_id``;
those of a TPU's line ``XLA Ops`` by their kind: its name, and its stat ``program_id``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Names, Profile
from peakline.tables.joins import positions, summed
from peakline.tables.once import once
from peakline.text import whole_number
from peakline.trace.events import nesting_of, trace_of

_OP_LINE = "XLA Ops"


@dataclass(frozen=True, slots=True)
class OpTime:
    """``runs`` counts events: an instruction of several kernels has one for each. ``self_ps`` is
    without what other events inside it cover.
    """

    runs: int
    self_ps: int


@dataclass(frozen=True, eq=False)
class OpEvents:
    """Events of instructions: the row in ``events``, the number of the program, the instruction's
    name. Where devices have planes, what a host does for them is left out.
    """

    event: Int64Array
    program: Int64Array
    name: Names


@once
def op_events(profile: Profile) -> OpEvents:
    """The events of the instructions of all programs.

    Raises InputError when the profile cannot be read.
    """
    nothing = np.zeros(0, np.int64)
    programs = profile.programs()
    if not programs or not profile.has_rows("events"):
        return OpEvents(nothing, nothing, Names.encode([]))
    numbers: dict[int, int] = {}
    for number in range(len(programs)):
        program_id = programs.program_id(number)
        if program_id is not None:
            numbers.setdefault(program_id, number)
    event, program, name = _of_stats(profile)
    more = _of_kinds(profile)
    event, program = np.append(event, more[0]), np.append(program, more[1])
    names = Names.encode([*name, *more[2]])
    device = profile.columns("planes").names("kind").per_row("device".__eq__, np.bool_)
    lines = profile.columns("lines").array("plane_id")
    line = profile.columns("events", {"line_id"}).array("line_id")
    on_device = device[lines[line[event]]] if event.size else np.zeros(0, np.bool_)
    distinct, place = np.unique(program, return_inverse=True)
    known = np.array([numbers.get(one % 2**64, -1) for one in distinct.tolist()], np.int64)
    of = known[place] if distinct.size else nothing
    chosen = np.flatnonzero((of >= 0) & (on_device | (not on_device.any())))
    return OpEvents(event[chosen], of[chosen], names.take(chosen))


@once
def op_times(profile: Profile) -> Mapping[int, Mapping[str, OpTime]]:
    """By the number of a program in ``hlo_modules`` the times of its instructions, by name.

    Where devices have planes, what a host does for them does not count. Raises InputError when the
    profile cannot be read.
    """
    result = op_events(profile)
    if not result.event.size:
        return {}
    trace = trace_of(profile)
    own = np.zeros(profile.columns("events", {"line_id"}).rows, np.int64)
    own[trace.rows(np.arange(trace.size))] = nesting_of(profile).own_ps
    wide = max(len(result.name.values), 1)
    pairs, first, place = np.unique(
        result.program * wide + result.name.codes, return_index=True, return_inverse=True
    )
    runs = np.bincount(place, minlength=pairs.size)
    spent = summed(place, own[result.event], pairs.size)
    times: dict[int, dict[str, OpTime]] = {}
    for one in np.argsort(first).tolist():
        number, code = divmod(int(pairs[one]), wide)
        times.setdefault(number, {})[result.name.values[code]] = OpTime(
            int(runs[one]), int(spent[one])
        )
    return times


def runs_of(profile: Profile, number: int, name: str) -> Int64Array:
    """The rows in ``events`` of one instruction's events."""
    result = op_events(profile)
    code = result.name.code_of(name)
    events: Int64Array = result.event[(result.program == number) & (result.name.codes == code)]
    return events


def _of_stats(profile: Profile) -> tuple[Int64Array, Int64Array, list[str]]:
    """Event, program id and instruction of the events that name both."""
    stats = profile.typed_stats(frozenset(("program_id", "hlo_op")))
    name, owner = stats.names("name"), stats.array("event_id")
    ids = np.flatnonzero(name.codes == name.code_of("program_id"))
    ops = np.flatnonzero(name.codes == name.code_of("hlo_op"))
    place = positions(owner[ids], owner[ops])
    ops, place = ops[place >= 0], place[place >= 0]
    texts = stats.names("text").take(ops).to_list()
    program = stats.array("integer")[ids[place]]
    return owner[ops], program, [(text or "").rsplit("::", 1)[-1] for text in texts]


def _of_kinds(profile: Profile) -> tuple[Int64Array, Int64Array, list[str]]:
    """The same of the op lines of TPUs."""
    nothing = np.zeros(0, np.int64)
    if not {"event_types", "event_type_stats"}.issubset(profile.tables):
        return nothing, nothing, []
    listed = profile.columns("lines").names("name").per_row(_OP_LINE.__eq__, np.bool_)
    if not listed.any():
        return nothing, nothing, []
    events = profile.columns("events", {"line_id", "type_id"})
    event = np.flatnonzero(listed[events.array("line_id")] & events.is_valid("type_id"))
    kinds = profile.columns("event_types")
    stats = profile.columns("event_type_stats")
    wanted = stats.take(stats.names("name").per_row("program_id".__eq__, np.bool_))
    program = np.full(kinds.rows, -1, np.int64)
    for kind, value in wanted.each("type_id", "value"):
        number = whole_number(value or "", 20)
        if number is not None:
            program[kind] = np.int64(np.uint64(number % 2**64).view(np.int64))
    shown = [
        short or (name or "").partition(" = ")[0].lstrip("%")
        for name, short in kinds.each("name", "display_name")
    ]
    kind = events.array("type_id")[event]
    return event, program[kind], [shown[one] for one in kind.tolist()]
