"""What one profile gives to the answer about a job: small, so that a thousand can be merged.

It is made where the profile is read (a thread, another process, a worker of a cluster), pickled,
and all that is said of a job is made of contributions alone.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import prod
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from peakline import compare, findings, timing
from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.compare.state import NO_PURPOSE, AllocatorState, Kind, Purpose, kind_of
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import MemoryAnswer
from peakline.memory.peak.explained import AllocatorPeak
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.joins import summed
from peakline.tables.rank_facts import RankFacts
from peakline.text import without_address
from peakline.timing.collectives import CollectiveRows
from peakline.timing.ops.host_devices import HostDevice, host_devices_of
from peakline.timing.step_breakdown import PARTS, StepTimes
from peakline.timing.steps.heat import FUNCTION, OP, step_work_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import NEVER, device_sets_of, host_sets_of
from peakline.trace.events import DEVICE, nesting_of, trace_of
from peakline.trace.intervals import Intervals, covered, union, without
from peakline.trace.op_inputs import inputs_of
from peakline.trace.steps import step_places_of

VERSION = 2
_NAMES = 48
"""So many ops, and as many functions, of a rank are compared with its peers': those that take
most."""
_OPS = 64
_GROUPS = 256
"""So many kinds of buffers at the peak are compared, those with most bytes; the rest is one
number."""
_FINDINGS = 12
_GAP = 0.02
"""So much of a step may lie between it and the next, and is of no account."""
_LEVEL = 1
"""Of zlib: a higher one takes longer than what it saves takes to send."""


class Packed:
    """A dataclass whose arrays are pickled as differences, which `Contribution` compresses well."""

    def __getstate__(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {
            name: _pack(value) if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _own(value))


def _own(value: Any) -> Any:
    if isinstance(value, _Differences):
        return _unpack(value)
    if isinstance(value, tuple):
        # The ranks of a job have the same names: one of each in memory.
        return tuple(intern(one) if isinstance(one, str) else one for one in value)
    return value


class _Differences(NamedTuple):
    shape: tuple[int, ...]
    kind: str
    data: bytes


def _pack(array: AnyArray) -> _Differences:
    """Differences along the last axis, the bytes of equal worth together."""
    flat = np.ascontiguousarray(array)
    if flat.dtype.kind == "i" and flat.size:
        flat = np.diff(flat.reshape(-1), prepend=flat.dtype.type(0))
    data = flat.view(np.uint8).reshape(-1, flat.dtype.itemsize).T.tobytes() if flat.size else b""
    return _Differences(array.shape, array.dtype.str, data)


def _unpack(packed: _Differences) -> AnyArray:
    kind = np.dtype(packed.kind)
    data = np.frombuffer(packed.data, np.uint8)
    if not data.size:
        return np.zeros(packed.shape, kind)
    flat = np.ascontiguousarray(data.reshape(kind.itemsize, -1).T).reshape(-1).view(kind)
    if kind.kind == "i":
        flat = np.cumsum(flat, dtype=kind)
    return flat.reshape(packed.shape)


@dataclass(frozen=True, eq=False)
class Steps(Packed):
    """The steps of a participant in order of time: ``parts`` has a column for each of `PARTS`,
    which add up to ``end - begin``; picoseconds on the profile's clock. ``worked_begin`` and
    ``worked_end`` are as in `Calls`.
    """

    name: tuple[str, ...]
    step_id: Int64Array
    begin: Int64Array
    end: Int64Array
    parts: Int64Array
    is_cut_off: BoolArray
    worked_begin: Int64Array
    worked_end: Int64Array

    @property
    def wall(self) -> Int64Array:
        """How long each is by itself."""
        return self.end - self.begin

    @cached_property
    def until(self) -> Int64Array:
        """The place of the step that follows each in time: it lasts to the begin of that. -1 for
        the last, which lasts to its end.
        """
        order = np.argsort(self.begin, kind="stable")
        result = np.full(order.size, -1, np.int64)
        result[order[:-1]] = order[1:]
        return result

    @cached_property
    def period(self) -> Int64Array:
        """How long each lasts, with what the program does until the next."""
        return self._lasting(self.begin, self.end)

    @cached_property
    def own_work(self) -> Int64Array:
        """How long of that the participant worked."""
        return self._lasting(self.worked_begin, self.worked_end)

    def _lasting(self, begin: Int64Array, end: Int64Array) -> Int64Array:
        return np.where(self.until >= 0, begin[self.until], end) - begin

    @cached_property
    def is_whole(self) -> BoolArray:
        """Which steps are recorded to their ends: not the last, where something lies between
        steps.
        """
        inner = np.flatnonzero(self.until >= 0)
        result = ~self.is_cut_off
        if inner.size:
            gaps = self.begin[self.until[inner]] - self.end[inner]
            if np.median(gaps) > _GAP * np.median(self.period[inner]):
                result = result & (self.until >= 0)
        return np.asarray(result)

    def part(self, name: str) -> Int64Array:
        """The column of one of `PARTS`."""
        return self.parts[:, PARTS.index(name)]


@dataclass(frozen=True, eq=False)
class Calls(Packed):
    """The collectives of a participant by arrival. ``kind``, ``group``, ``ranks``, ``key`` and
    ``data_type`` are places in ``texts``, -1 for what is not recorded, as in the other columns.

    ``step`` is the place in the participant's steps. ``worked_arrive`` and ``worked_end`` are how
    long the participant had worked by then since the profile's start: all time but that which it
    spent in collectives with nothing to do beside them; picoseconds. ``line`` is the stream or
    thread. It ``holds`` the participant up that had nothing to do until its end, and went on then;
    it ``follows`` a wait where there was nothing to do before it either.
    """

    texts: tuple[str, ...]
    kind: Int32Array
    group: Int32Array
    ranks: Int32Array
    key: Int32Array
    data_type: Int32Array
    group_size: Int32Array
    peer: Int32Array
    line: Int32Array
    sequence: Int64Array
    size_bytes: Int64Array
    arrive: Int64Array
    end: Int64Array
    step: Int32Array
    worked_arrive: Int64Array
    worked_end: Int64Array
    holds: BoolArray
    follows: BoolArray

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.arrive.size


@dataclass(frozen=True, eq=False)
class Work(Packed):
    """What the steps of a participant spend on what: ``ps`` and ``count`` are names x steps.

    ``side`` of each name is ``device``, ``host`` or ``function`` (of the program). ``elements``
    is how many elements the largest inputs of the op's calls, or blocks the kernel's launches, have
    together in a mean step, -1 where that is not recorded; ``shape`` the largest. ``is_cut``: there
    are more names, which take less.
    """

    names: tuple[str, ...]
    side: tuple[str, ...]
    ps: Int64Array
    count: Int32Array
    elements: Int64Array
    shape: tuple[str, ...]
    is_cut: bool = False


@dataclass(frozen=True, eq=False)
class Ops(Packed):
    """The ops of a profile that take most self time on each side (``device``, ``host``), and its
    kernels (``kernel``): what `peakline ops` lists.
    """

    side: tuple[str, ...]
    name: tuple[str, ...]
    self_ps: Int64Array
    count: Int64Array


@dataclass(frozen=True, eq=False)
class Participant:
    """A process, or one of several devices of a process that wait for each other."""

    device: str
    steps: Steps
    calls: Calls
    work: Work


@dataclass(frozen=True, eq=False)
class RankMemory:
    """One allocator: its peak in bytes, when it was, what lived then, and what there is.

    ``groups`` are the kinds with most bytes, with what they are for and where they were made
    (empty: not recorded); ``rest_bytes`` is what all others take. ``steps`` are the first and the
    last step, by id, in which what lives of each kind was allocated; None where that is not known.
    """

    allocator: str
    name: str
    peak_bytes: int
    capacity_bytes: int | None
    peak_step: int | None
    peak_time_ps: int
    groups: tuple[tuple[Kind, int, int, Purpose], ...]
    rest_bytes: int
    categories: Mapping[str, int]
    peak_unknown: str = ""
    steps: tuple[tuple[int, int] | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Contribution:
    """What one profile gives. ``start_ns`` is when its clock is zero, in ns since 1970; None where
    the format does not say. ``first`` are its findings, those that gain most in front, without
    the rows behind them; ``warnings`` what was lost of the file, by kind. ``memory_by_step`` is the
    most that the fullest allocator has in use in each step of the first participant, -1 for one
    before its first record; empty where nothing is recorded by time.
    """

    version: int
    format: str
    host: str
    path: str
    facts: RankFacts
    start_ns: int | None
    span: tuple[int, int]
    has_time: bool
    has_device: bool
    participants: tuple[Participant, ...]
    ops: Ops
    memory: tuple[RankMemory, ...]
    memory_by_step: Int64Array
    no_memory: str
    to_record: str
    first: tuple[Mapping[str, object], ...]
    warnings: Mapping[str, str]

    def __getstate__(self) -> bytes:
        return zlib.compress(pickle.dumps(vars(self), protocol=5), _LEVEL)

    def __setstate__(self, state: bytes) -> None:
        for name, value in pickle.loads(zlib.decompress(state)).items():  # noqa: S301 (our own)
            object.__setattr__(self, name, value)


def identity_of(profile: Profile) -> Contribution:
    """Who a profile is in a job, without what it holds: for answers that are made beside it."""
    return Contribution(
        version=VERSION,
        format=profile.format,
        host=profile.host,
        path=profile.path,
        facts=profile.rank_facts,
        start_ns=profile.start_ns,
        span=(0, profile.duration_ps or 0),
        has_time="steps" in profile.tables and profile.has_rows("steps"),
        has_device=False,
        participants=(),
        ops=Ops((), (), np.zeros(0, np.int64), np.zeros(0, np.int64)),
        memory=(),
        memory_by_step=_NO_SIZES,
        no_memory="",
        to_record="",
        first=(),
        warnings={one.kind: one.detail for one in profile.concerning},
    )


def time_of(profile: Profile) -> Contribution:
    """What ``profile`` gives to the answer who is waited for: no memory, no findings, which take
    most of the time of a contribution.

    Raises InputError when the profile cannot be read.
    """
    times = timing.step_times(profile)
    has_events = "events" in profile.tables or "op_runs" in profile.tables
    participants = _participants(profile, times) if has_events else ()
    return replace(
        identity_of(profile),
        span=_span(participants, profile),
        has_time=bool(times.rows),
        has_device=bool(times.devices),
        participants=participants,
    )


def contribution_of(profile: Profile) -> Contribution:
    """What ``profile`` gives to the answer about a job.

    Raises InputError when the profile cannot be read.
    """
    in_use = _InUse()
    memory, time = findings.answers_of(profile, is_last=True, seen=in_use.of)
    first = findings.priorities(memory.findings, time.findings)
    own = time_of(profile)
    return replace(
        own,
        ops=_ops(profile),
        memory=_memory(memory),
        memory_by_step=in_use.by_step(own.participants[0].steps) if own.participants else _NO_SIZES,
        no_memory="" if memory.allocators else memory.nothing,
        to_record=memory.to_record,
        first=tuple(
            {"about": one.about, "gain_share": one.gain_share} | _plain(one.finding)
            for one in first[:_FINDINGS]
        ),
    )


_NO_SIZES: Int64Array = np.zeros(0, np.int64)


class _InUse:
    """The memory in use of a profile's fullest allocator over time."""

    def __init__(self) -> None:
        self._times, self._used = _NO_SIZES, _NO_SIZES

    def of(self, answer: MemoryAnswer) -> None:
        """Look at an answer that has its history."""
        history = answer.history
        if history is None or answer.moment or not answer.allocators:
            return
        fullest = max(answer.allocators, key=lambda one: one.peak_bytes).allocator
        rows = history.usage_rows(history.lifetimes.allocators.index(fullest))
        self._times, self._used = history.events.array("time_ps")[rows], history.used[rows]

    def by_step(self, steps: Steps) -> Int64Array:
        """The most in use from the begin of each step to that of the next."""
        if not self._times.size or not steps.begin.size:
            return _NO_SIZES
        first = np.searchsorted(self._times, steps.begin, side="right") - 1
        last = np.searchsorted(self._times, steps.begin + steps.period)
        spans = zip(np.maximum(first, 0).tolist(), last.tolist(), strict=True)
        return np.array([self._used[a:b].max(initial=-1) for a, b in spans], np.int64)


def _plain(finding: Finding) -> dict[str, object]:
    document = finding.as_json()
    return document | {"evidence": dict(finding.evidence)}


def _span(participants: Sequence[Participant], profile: Profile) -> tuple[int, int]:
    times = [
        (int(p.steps.begin.min()), int(p.steps.end.max())) for p in participants if p.steps.name
    ]
    if times:
        return min(begin for begin, _ in times), max(end for _, end in times)
    return 0, profile.duration_ps or 0


def rows_of_participants(profile: Profile) -> tuple[tuple[int, Int64Array], ...]:
    """The participants of a profile, one for the process, or one for each device where several
    take part in collectives: the place of the device in `CollectiveRows.devices` (-1: the process)
    and the rows of `timing.collective_rows` that are its `Calls`, in their order.
    """
    rows = timing.collective_rows(profile)
    traced = {one.device.name for one in device_sets_of(profile)}
    traced.update(one.name for one in host_devices_of(profile))
    numbers = sorted(set(rows.device.tolist())) if rows.arrive.size else []
    apart = [number for number in numbers if number >= 0 and rows.devices[number] in traced]
    if not apart:
        return ((-1, np.arange(rows.rows)),)
    return tuple((number, np.flatnonzero(rows.device == number)) for number in apart)


def _participants(profile: Profile, times: StepTimes) -> tuple[Participant, ...]:
    rows = timing.collective_rows(profile)
    sets = {one.device.name: one for one in device_sets_of(profile)}
    on_host = {one.name: one for one in host_devices_of(profile)}
    place = {name: number for number, name in enumerate(times.devices)}
    result = []
    for number, mine in (every := rows_of_participants(profile)):
        name = rows.devices[number] if number >= 0 else "".join(times.devices[:1])
        title = name if len(every) > 1 else ""
        if name in on_host:
            # It has no steps of its own, and its ops run on threads that others have, too. It waits
            # in a rendezvous within the op, whose rest is work.
            one, meets = on_host[name], union(rows.arrive[mine], rows.end[mine])
            waits, work = without(meets, one.computes), _work_of(profile, one.events, times)
            made = _participant(times, -1, rows, mine, title, waits, work)
            steps = replace(made.steps, parts=_parts_of(made.steps, one, waits))
            result.append(replace(made, steps=steps))
            continue
        if not name:
            host = host_sets_of(profile)
            communication = host.get(Activity.COMMUNICATION, NEVER)
            computes = host.get(Activity.HOST_OP, NEVER)
        else:
            own = sets.get(name)
            communication = NEVER if own is None else own.communication
            computes = NEVER if own is None else own.sets.get(Activity.COMPUTE, NEVER)
        # A device without steps has none of the host's.
        device = place.get(name, _NO_STEPS) if name else -1
        waits, work = without(communication, computes), _work(profile, device)
        result.append(_participant(times, device, rows, mine, title, waits, work))
    return tuple(result)


_NO_STEPS = -2


def _parts_of(steps: Steps, device: HostDevice, waits: Intervals) -> Int64Array:
    """What the steps of a device of a CPU go to; the host's are not its."""
    result = np.zeros((steps.begin.size, len(PARTS)), np.int64)
    for name, what in (("compute", device.computes), ("communication", waits)):
        result[:, PARTS.index(name)] = covered(what, steps.begin, steps.end)
    result[:, PARTS.index("unknown")] = steps.wall - result.sum(axis=1)
    return result


def _participant(
    times: StepTimes,
    device: int,
    rows: CollectiveRows,
    mine: Int64Array,
    name: str,
    waits: Intervals,
    work: Work,
) -> Participant:
    own = times.rows_of(device)
    steps = Steps(
        tuple(times.name[int(row)] or "" for row in own),
        times.step_id[own],
        times.start[own],
        times.end[own],
        times.parts[own],
        times.is_cut_off[own],
        worked(waits, times.start[own]),
        worked(waits, times.end[own]),
    )
    return Participant(name, steps, _calls(rows, mine, steps, waits), work)


def _calls(rows: CollectiveRows, mine: Int64Array, steps: Steps, waits: Intervals) -> Calls:
    texts: dict[str, int] = {}

    def coded(names: Names) -> Int32Array:
        used, place = np.unique(names.codes[mine], return_inverse=True)
        codes = [
            -1 if code < 0 else texts.setdefault(names.values[code], len(texts))
            for code in used.tolist()
        ]
        return np.array(codes, np.int32)[place] if used.size else np.zeros(0, np.int32)

    arrive, end = rows.arrive[mine], rows.end[mine]
    at = np.searchsorted(steps.begin, arrive, side="right") - 1
    inside = (
        (at >= 0) & (arrive < steps.end[np.maximum(at, 0)])
        if steps.name
        else np.zeros(arrive.size, np.bool_)
    )
    columns = {
        "kind": coded(rows.kind), "group": coded(rows.group), "ranks": coded(rows.group_ranks),
        "key": coded(rows.key), "data_type": coded(rows.data_type),
    }  # fmt: skip
    return Calls(
        texts=tuple(texts),
        **columns,
        group_size=rows.group_size[mine],
        peer=rows.peer[mine],
        line=rows.thread_line[mine],
        sequence=rows.sequence[mine],
        size_bytes=rows.size_bytes[mine],
        arrive=arrive,
        end=end,
        step=np.where(inside, at, -1).astype(np.int32),
        worked_arrive=worked(waits, arrive),
        worked_end=worked(waits, end),
        holds=_lasting(waits, end, _AT_ONCE_PS),
        follows=_lasting(waits, arrive),
    )


_AT_ONCE_PS = 20_000_000
"""Who goes on within 20 us of the end of a collective was waiting for that."""


def _lasting(waits: Intervals, until: Int64Array, at_most: int | None = None) -> BoolArray:
    """Whether a wait lasts until each of ``until``, and no longer than ``at_most`` after it."""
    begins, ends = waits
    if not begins.size:
        return np.zeros(until.size, np.bool_)
    at = np.searchsorted(begins, until, side="left") - 1
    last = ends[np.maximum(at, 0)]
    result = (at >= 0) & (last >= until)
    return np.asarray(result if at_most is None else result & (last <= until + at_most))


def worked(waits: Intervals, times: Int64Array) -> Int64Array:
    """How long was worked until each of ``times``: all of it but ``waits``."""
    first = np.full(times.size, min(int(waits[0][0]), 0) if waits[0].size else 0)
    return times - covered(waits, first, np.maximum(times, first))


def _work(profile: Profile, device: int) -> Work:
    """The ops and functions that take most of the steps' time; not the collectives, which wait."""
    trace = trace_of(profile)
    waits = np.unique(trace.name.codes[activity_of(profile) == Activity.COMMUNICATION])
    on_device = np.unique(trace.name.codes[trace.within(trace.lines_on(DEVICE))])
    left_out = {trace.name.values[code] for code in waits.tolist() if code >= 0}
    of_device = {trace.name.values[code] for code in on_device.tolist() if code >= 0}
    names: list[str] = []
    side: list[str] = []
    ps: list[Int64Array] = []
    count: list[Int64Array] = []
    steps, is_cut = 0, False
    for by in (OP, FUNCTION):
        work = step_work_of(profile, device, by)
        steps = work.steps
        total = np.bincount(work.row, work.ps, len(work.names))
        order = [k for k in np.argsort(-total, kind="stable").tolist() if total[k]]
        chosen = [k for k in order if work.names[k] not in left_out]
        is_cut |= len(chosen) > _NAMES
        chosen = chosen[:_NAMES]
        rows: dict[str, int] = {}
        place = np.full(len(work.names), -1)
        for k in chosen:
            place[k] = rows.setdefault(without_address(work.names[k]), len(rows))
        mine = np.flatnonzero(place[work.row] >= 0)
        where = place[work.row[mine]], work.step[mine]
        for cells, values in ((ps, work.ps), (count, work.count)):
            cells.append(np.zeros((len(rows), steps), np.int64))
            np.add.at(cells[-1], where, values[mine])
        own = [*rows]
        names += own
        side += (
            ["function"] * len(own)
            if by == FUNCTION
            else ["device" if name in of_device else "host" for name in own]
        )
    return Work(
        tuple(names),
        tuple(side),
        np.concatenate(ps),
        np.concatenate(count).astype(np.int32),
        *_shapes(profile, names, steps),
        is_cut,
    )


def _work_of(profile: Profile, events: Int64Array, times: StepTimes) -> Work:
    """The same of the ops at places in the trace, those of a device of a CPU: of the step in whose
    time they begin, which threads of a pool do not say.
    """
    trace, rows = trace_of(profile), times.rows_of(-1)
    own = events[activity_of(profile)[events] != Activity.COMMUNICATION]
    begin = trace.start[own]
    step = np.searchsorted(times.start[rows], begin, side="right") - 1
    inside = (step >= 0) & (begin < np.append(times.end[rows], 0)[step])
    own, step, steps = own[inside], step[inside], rows.size
    used, row = np.unique(trace.name.codes[own], return_inverse=True)
    ps, count = (np.zeros((used.size, steps), np.int64) for _ in range(2))
    np.add.at(ps, (row, step), nesting_of(profile).own_ps[own])
    np.add.at(count, (row, step), 1)
    order = np.argsort(-ps.sum(axis=1), kind="stable")[:_NAMES]
    names = tuple(trace.name.values[code] if code >= 0 else "" for code in used[order].tolist())
    unknown, side = np.full(order.size, -1, np.int64), ("device",) * order.size
    cut = used.size > order.size
    shapes = ("",) * order.size
    return Work(names, side, ps[order], count[order].astype(np.int32), unknown, shapes, cut)


def _ops(profile: Profile) -> Ops:
    rows: list[tuple[str, str, int, int]] = []
    if "op_stats" in profile.tables and profile.has_rows("op_stats"):
        table = profile.columns("op_stats")
        sides = table.names("side")
        for side in ("device", "host"):
            own = table.take(np.flatnonzero(sides.codes == sides.code_of(side)))
            columns = own.names("op"), own.array("self_ps"), own.array("occurrences")
            rows += ((side, *row) for row in _most(*columns))
    if "kernels" in profile.tables and profile.has_rows("kernels"):
        own = profile.columns("kernels")
        columns = own.names("kernel"), own.array("total_ps"), own.array("occurrences")
        rows += (("kernel", *row) for row in _most(*columns))
    return Ops(
        tuple(row[0] for row in rows),
        tuple(row[1] for row in rows),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
    )


def _most(names: Names, ps: Int64Array, count: Int64Array) -> Iterator[tuple[str, int, int]]:
    """Those that take most time by name, with what equal names take together."""
    used, code = np.unique(names.codes, return_inverse=True)
    rows: dict[str, int] = {}
    texts = (names.values[one] if one >= 0 else "" for one in used.tolist())
    place = np.array([rows.setdefault(without_address(one), len(rows)) for one in texts], np.int64)
    total, often = (summed(place[code], values, len(rows)) for values in (ps, count))
    named = [*rows]
    for k in np.argsort(-total, kind="stable")[:_OPS].tolist():
        yield named[k], int(total[k]), int(often[k])


def _shapes(
    profile: Profile, names: Sequence[str], steps: int
) -> tuple[Int64Array, tuple[str, ...]]:
    """Of each op the elements that the largest inputs of its calls have in a mean step, and the
    largest shape of all; of each kernel the blocks that it is launched with, and the largest grid.
    """
    elements, shapes = np.full(len(names), -1, np.int64), [""] * len(names)
    place = {name: number for number, name in enumerate(names)}
    for report in timing.kernel_reports(profile) if steps else ():
        number, grid = place.get(report.launch.name), report.launch.grid
        if number is not None and prod(grid) > 0:
            before = max(int(elements[number]), 0)
            elements[number] = before + round(prod(grid) * report.occurrences / steps)
            shapes[number] = max(shapes[number], f"a grid of {list(grid)}", key=_elements)
    inputs, trace = inputs_of(profile), trace_of(profile)
    if not inputs.is_recorded or not steps:
        return elements, tuple(shapes)
    sizes = np.array([_elements(text) for text in inputs.shapes], np.float64)
    events = np.flatnonzero((inputs.shape >= 0) & (step_places_of(profile) >= 0))
    code, shape = trace.name.codes[events], inputs.shape[events]
    for name, number in place.items():
        own = shape[code == trace.name.code_of(name)]
        if own.size:
            elements[number] = round(sizes[own].sum() / steps)
            shapes[number] = inputs.shapes[own[sizes[own].argmax()]]
    return elements, tuple(shapes)


def _elements(shape: str) -> int:
    """How many elements ``[256, 512]`` are."""
    return prod(int(text) for text in re.findall(r"\d{1,18}", shape))


def _memory(answer: MemoryAnswer) -> tuple[RankMemory, ...]:
    state = compare.state_of(answer)
    return tuple(
        _allocator(peak, figures)
        for peak, figures in zip(answer.allocators, state.allocators, strict=True)
    )


def _allocator(peak: AllocatorPeak, state: AllocatorState) -> RankMemory:
    groups = [
        (one.kind, one.bytes, one.count, state.purposes.get(one.kind, NO_PURPOSE))
        for one in state.groups[:_GROUPS]
    ]
    made: dict[Kind, list[int]] = {}
    for buffer in peak.peak_buffers:
        if buffer.start_step is not None:
            made.setdefault(kind_of(buffer), []).append(buffer.start_step)
    return RankMemory(
        peak.allocator,
        state.name,
        peak.peak_bytes,
        peak.capacity_bytes,
        peak.peak_step,
        peak.peak_time_ps,
        tuple(groups),
        sum(one.bytes for one in state.groups[_GROUPS:]),
        dict(state.categories),
        state.peak_unknown,
        tuple((min(made[kind]), max(made[kind])) if kind in made else None for kind, *_ in groups),
    )
