"""Lines that XProf derives for devices from the stats of their events: steps, name scopes, ops of
the framework, modules, HLO ops, source lines, launches, transfers from and to the host.

Sources: ``derived_timeline.cc`` and ``host_offload_utils.cc`` in openxla/xprof (``xprof/utils``);
the numbers of the lines: ``trace_utils.h`` in openxla/xla (``xla/tsl/profiler/utils``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.kernels.derived_lines import expand, pair_transfers
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.viewer.derived_sources import (
    DeviceEvents,
    GpuPaths,
    Paths,
    StatTexts,
    Stream,
    gpu_paths,
    tpu_paths,
)

_GPU, _HOST = "/device:GPU:", "/host:CPU"
_STEPS_LINE, _LAUNCH_LINE, _SCOPE_LINE, _OP_LINE, _SOURCE_LINE, _OFFLOAD_LINE = (
    0xDEADBEEF, 0xDEADBEF0, 0xDEADBEF1, 0xDEADBEF2, 0xDEADBEF6, 0xDEADBEF7,
)  # fmt: skip
_SCOPES, _OPS, _MODULES, _HLO, _SOURCE = (
    "Framework Name Scope", "Framework Ops", "XLA Modules", "XLA Ops", "Source code",
)  # fmt: skip
_NUMBERS_OF_STREAM = 7
"""A stream is numbered behind the one before and room for six derived lines."""
_MOST_OFFLOAD_ROWS = 4
_NO_GROUP = -1
Arguments = list[tuple[str, str | int | float]]


@dataclass(frozen=True, eq=False)
class DerivedLine:
    """A line that is not in the file: its plane, its thread's number, and its events.

    ``texts`` are the names by code, each as it is shown and in full (None: no other). ``group`` is
    the step, -1 for none. ``arguments`` gives the arguments of an event by its place.
    """

    plane: int
    tid: int
    name: str
    start: Int64Array
    end: Int64Array
    code: Int64Array
    texts: list[tuple[str, str | None]]
    group: Int64Array
    arguments: Callable[[int], Arguments] | None = None


@dataclass(frozen=True, eq=False)
class Derived:
    """The derived lines; the thread numbers that lines of the file get beside them; and the steps
    of device events that have none of their own.
    """

    lines: list[DerivedLine] = field(default_factory=list)
    tids: dict[int, int] = field(default_factory=dict)
    rows: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    groups: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))


class DerivedEvents:
    """What is known of the events of derived lines in a view.

    Event n of the view is number n - ``first`` of theirs or, where there is ``place``, number
    ``place[n]``, -1 for an event of the file.
    """

    def __init__(
        self, lines: list[DerivedLine], first: int = 0, place: AnyArray | None = None
    ) -> None:
        self._lines, self.first, self._place = lines, first, place
        self._bounds = np.cumsum([0, *(line.start.size for line in lines)])

    def __call__(self, event: int) -> Arguments:
        """The arguments of an event of the view."""
        number = event - self.first if self._place is None else int(self._place[event])
        if number < 0:
            return []
        place = int(np.searchsorted(self._bounds, number, side="right")) - 1
        line, at = self._lines[place], number - int(self._bounds[place])
        full = line.texts[int(line.code[at])][1]
        arguments: Arguments = [] if full is None else [("long_name", full)]
        return arguments + (line.arguments(at) if line.arguments is not None else [])

    @cached_property
    def group(self) -> AnyArray:
        """The step of each, -1 for none."""
        return np.concatenate([np.zeros(0, np.int64), *(line.group for line in self._lines)])

    def full_names(self) -> list[str]:
        """The full names of all that are shown by another."""
        return [full for line in self._lines for _, full in line.texts if full]


@once
def derived_lines(profile: Profile) -> Derived:
    """The derived lines of the profile's devices, made once; none but for XSpaces of a GPU or TPU.

    None either where the file was grouped when it was written (``IsXSpaceGrouped`` in
    ``xla/tsl/profiler/utils/xplane_utils.cc``): such a file has those lines already.

    Raises InputError when the profile cannot be read.
    """
    if "event_types" not in profile.tables or profile.is_grouped():
        return Derived()
    names = [name or "" for name in profile.columns("planes").names("name").to_list()]
    gpus = [plane for plane, name in enumerate(names) if name.startswith(_GPU)]
    cores = [
        plane for plane, name in enumerate(names)
        if name.startswith("/device:TPU:") and name.removeprefix("/device:TPU:").isdecimal()
    ]  # fmt: skip
    result = Derived(lines=[line for core in cores for line in _of_tpu(profile, core)])
    if not gpus:
        return result
    rows, groups = [result.rows], [result.groups]
    for plane in gpus:
        events = DeviceEvents(profile, plane)
        own = events.group
        filled = _forward(own)
        given = np.flatnonzero(filled != own)
        rows.append(events.rows[given])
        groups.append(filled[given])
        events.group = filled
        result.lines.extend(_steps(profile, events))
        result.lines.extend(_of_streams(profile, events, result.tids))
    result.lines.extend(_launches(profile, gpus, names))
    return Derived(result.lines, result.tids, np.concatenate(rows), np.concatenate(groups))


def _forward(group: Int64Array) -> Int64Array:
    """Events without a step take that of the last one before them that has one."""
    last = np.maximum.accumulate(np.where(group != _NO_GROUP, np.arange(group.size), -1))
    return np.where(last >= 0, group[np.maximum(last, 0)], _NO_GROUP)


def _line(
    events: DeviceEvents, rows: Int64Array, paths: Paths, tid: int, name: str,
    cut: BoolArray | None, *, is_gpu: bool, at_end: bool = False,
) -> tuple[DerivedLine, BoolArray]:  # fmt: skip
    """A derived line from ``rows`` of the events, and where its outermost events begin anew."""
    depth = np.diff(paths.first)[paths.path[paths.path >= 0]]
    begin, end, code, group = np.empty((4, int(depth.sum())), np.int64)
    last, opened = np.full(int(depth.max(initial=0)), -1, np.int64), np.zeros(rows.size, np.bool_)
    count = expand(
        events.start[rows], events.end[rows], paths.path, paths.first, paths.codes,
        events.group[rows], np.zeros(rows.size, np.bool_) if cut is None else cut, is_gpu, at_end,
        begin, end, code, group, last, opened,
    )  # fmt: skip
    begin, end, code, group = begin[:count], end[:count], code[:count], group[:count]
    line = DerivedLine(events.plane, tid, name, begin, end, code, paths.texts, group)
    return line, opened


def _steps(profile: Profile, events: DeviceEvents) -> list[DerivedLine]:
    distinct, place = np.unique(events.group, return_inverse=True)
    steps = profile.columns("steps")
    named = dict(zip(steps.array("step_id").tolist(), steps.names("name").to_list(), strict=True))
    texts: list[tuple[str, str | None]] = [
        (named.get(number) or str(number), None) for number in distinct.tolist()
    ]
    path = np.where(events.group == _NO_GROUP, -1, place)
    paths = Paths(path, np.arange(distinct.size + 1), np.arange(distinct.size), texts)
    every = np.arange(events.rows.size)
    line, _ = _line(events, every, paths, _STEPS_LINE, "Steps", None, is_gpu=True)

    def arguments(at: int) -> Arguments:
        """Steps that the file gives, and that grouping did not find, have no name."""
        name = named.get(int(distinct[line.code[at]]))
        return [("step_name", name)] if name else []

    return [replace(line, arguments=arguments)] if line.start.size else []


def _of_streams(profile: Profile, events: DeviceEvents, tids: dict[int, int]) -> list[DerivedLine]:
    """Five lines for every stream of a GPU; the streams of computations and the fullest first."""
    result: list[DerivedLine] = []
    streams = events.streams()
    streams.sort(key=lambda stream: ("Compute" not in stream.name, -stream.rows.size))
    for place, stream in enumerate(streams):
        tids[stream.line] = 1 + place * _NUMBERS_OF_STREAM
        result += _of_stream(
            events, stream, tids[stream.line], gpu_paths(profile, events, stream.rows)
        )
    return result


def _of_stream(
    events: DeviceEvents, stream: Stream, number: int, paths: GpuPaths
) -> list[DerivedLine]:
    """The lines of one stream, numbered behind it; where a module begins, so does all in it."""

    def made(
        offset: int, name: str, cut: BoolArray | None, paths: Paths
    ) -> tuple[DerivedLine, BoolArray]:
        shown = f"{name} - from #{stream.native}"
        return _line(events, stream.rows, paths, number + offset, shown, cut, is_gpu=True)

    modules, opened = made(3, _MODULES, None, paths.modules)
    scopes, scoped = made(1, _SCOPES, opened, paths.scopes)
    ops, _ = made(2, _OPS, scoped, paths.ops)
    hlo, _ = made(4, _HLO, opened, paths.hlo)
    source, _ = made(5, _SOURCE, None, paths.source)
    return [line for line in (scopes, ops, modules, hlo, source) if line.start.size]


def _of_tpu(profile: Profile, plane: int) -> list[DerivedLine]:
    events = DeviceEvents(profile, plane, with_derived=True)
    every = np.flatnonzero(~events.is_async)
    paths = tpu_paths(profile, events, every)
    scopes, scoped = _line(
        events, every, paths.scopes, _SCOPE_LINE, _SCOPES, None, is_gpu=False, at_end=True
    )
    ops, _ = _line(events, every, paths.ops, _OP_LINE, _OPS, scoped, is_gpu=False)
    source, _ = _line(events, every, paths.source, _SOURCE_LINE, _SOURCE, None, is_gpu=False)
    lines = [line for line in (scopes, ops, source) if line.start.size]
    return lines + _offloads(profile, events, every)


def _offloads(profile: Profile, events: DeviceEvents, every: AnyArray) -> list[DerivedLine]:
    """Transfers between a TPU and its host, from what starts one to what ends it."""
    kinds = StatTexts.offloads(profile)
    if not kinds.names:
        return []
    kind = events.type[every]
    mine = every[kinds.code[kind] >= 0]
    kind = events.type[mine]
    names = [*dict.fromkeys(kinds.names)]
    place = {name: number for number, name in enumerate(names)}
    of_code = np.array([place[name] for name in kinds.names], np.int64)
    name = of_code[kinds.code[kind]]
    following, opens, closes, rows = np.full((4, mine.size), -1, np.int64)
    head, tail = np.full((2, len(names)), -1, np.int64)
    count = pair_transfers(
        events.start[mine], events.end[mine], name, kinds.is_start[kind],
        following, head, tail, np.empty(_MOST_OFFLOAD_ROWS, np.int64), opens, closes, rows,
    )  # fmt: skip
    opens, closes, rows = opens[:count], closes[:count], rows[:count]
    begin = events.start[mine][opens]
    end = np.maximum(begin, events.end[mine][closes])
    lines = []
    for row in range(int(rows.max(initial=-1)) + 1):
        own = np.flatnonzero(rows == row)

        def arguments(at: int, own: AnyArray = own) -> Arguments:
            return kinds.arguments(int(kind[opens[own[at]]]), int(kind[closes[own[at]]]))

        lines.append(
            DerivedLine(
                events.plane, _OFFLOAD_LINE + row, f"Host Offload Ops row {row}", begin[own],
                end[own], name[closes[own]], [(text, "") for text in names],
                np.full(own.size, _NO_GROUP, np.int64), arguments,
            )
        )  # fmt: skip
    return lines


def _launches(profile: Profile, gpus: list[int], names: list[str]) -> list[DerivedLine]:
    """When the host launched what each GPU did in a step."""
    if _HOST not in names:
        return []
    events = DeviceEvents(profile, names.index(_HOST))
    device = events.number("device_id")
    known = (device >= 0) & (device < len(gpus)) & events.has("correlation_id")
    is_cu = np.array([text.startswith("cu") for text in events.names.values] or [False], np.bool_)
    known &= (events.group != _NO_GROUP) & ~is_cu[events.names.codes]
    at = np.flatnonzero(known)
    if not at.size:
        return []
    steps = profile.columns("steps")
    named = dict(zip(steps.array("step_id").tolist(), steps.names("name").to_list(), strict=True))
    at = at[np.isin(events.group[at], list(named))]
    lines = []
    for number in np.unique(device[at]).tolist():
        own = at[device[at] == number]
        own = own[np.argsort(events.group[own], kind="stable")]
        groups, first = np.unique(events.group[own], return_index=True)
        length = (events.end[own] - events.start[own]).astype(np.float64)
        counts = np.diff(np.append(first, own.size)).tolist()
        most = np.maximum.reduceat(length, first).tolist()
        total = np.add.reduceat(length, first).tolist()

        def arguments(
            at: int, counts: list[int] = counts, most: list[float] = most,
            total: list[float] = total,
        ) -> Arguments:  # fmt: skip
            return [
                ("num_launches", counts[at]),
                ("max_launch_time_us", most[at] / 1e6),
                ("avg_launch_time_us", total[at] / counts[at] / 1e6),
            ]

        lines.append(
            DerivedLine(
                gpus[number], _LAUNCH_LINE, "Launch Stats",
                np.minimum.reduceat(events.start[own], first),
                np.maximum.reduceat(events.end[own], first),
                np.arange(groups.size),
                [(f"Launch Stats for {named[group]}", None) for group in groups.tolist()],
                groups, arguments,
            )
        )  # fmt: skip
    return lines
