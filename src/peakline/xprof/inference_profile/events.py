"""The events of one host that serve requests, by their names, with their groups and stats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.timing.ops.tpu import type_stats_of, types_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import DEVICE, TraceLine, trace_of
from peakline.trace.intervals import union
from peakline.xprof.inference_profile.names import BATCHES, REQUESTS, SERVER
from peakline.xprof.inference_profile.spans import Part, Span
from peakline.xprof.rules.step_events import TPU_PREFIX, groups_of

SCHEDULES = (
    "ScheduleWithSplit", "ScheduleWithoutSplit", "ScheduleWithEagerSplit", "ASBSQueue::Schedule",
)  # fmt: skip
PADDINGS = (
    "ConcatInputTensors", "OrbaxServing::ConcatInputBuffers", "MergeInputTensors",
    "BrainSessionRun",
)  # fmt: skip
TENSORS = ("Linearize", "Delinearize", "TransferBufferFromDevice-FastPath")
TRANSFERS = {
    "ReadHbm": Part.DEVICE_TO_HOST,
    "TransferD2HRequest": Part.DEVICE_TO_HOST,
    "WriteHbm": Part.HOST_TO_DEVICE,
    "TransferH2DRequest": Part.HOST_TO_DEVICE,
    "TransferPreprocessedH2DRequest": Part.HOST_TO_DEVICE,
}
ISSUED = {
    "tpu::System::TransferToDevice=>IssueEvent": Part.HOST_TO_DEVICE,
    "tpu::System::TransferFromDevice=>IssueEvent": Part.DEVICE_TO_HOST,
}
"""Transfers that last until the event of the same context whose name ends with `DONE`."""
DONE = "=>Done"
EXECUTES = (
    "TPUPartitionedCallOp-ExecuteLocal", "TPUPartitionedCallOp-ExecuteRemote",
    "TPUPartitionedCallOp-InitializeVarOnTPU", "tpu::System::Execute",
)  # fmt: skip
LAUNCHES = ("DoEnqueueProgram", "DoEnqueueContinuationProgram")
CALLBACK = "CompleteCallbacks"
_NAMES = frozenset(
    (
        *(name for names in REQUESTS for name in names), *BATCHES, *SCHEDULES, *PADDINGS,
        *TENSORS, *TRANSFERS, *ISSUED, *(name + DONE for name in ISSUED), *EXECUTES, *LAUNCHES,
        CALLBACK,
    )
)  # fmt: skip
_STATS = frozenset(
    (
        "model_id", "_r", "_c", "batching_input_task_size", "padding_amount",
        "batch_size_after_padding", "shape", "layout",
    )
)  # fmt: skip
_HOST, _MODULES, _STREAMZ = "/host:CPU", "XLA Modules", "/host:tfstreamz"
_PARTS = {
    Activity.COMPUTE: Part.DEVICE_COMPUTE,
    Activity.COMMUNICATION: Part.DEVICE_COMPUTE,
    Activity.HOST_TO_DEVICE: Part.HOST_TO_DEVICE,
    Activity.DEVICE_TO_HOST: Part.DEVICE_TO_HOST,
}
Value = str | int


class Event(NamedTuple):
    """One event: its name, the id of its group, begin and end in ps, stats by name."""

    name: str
    group: int
    begin_ps: int
    end_ps: int
    stats: dict[str, Value]

    def number(self, stat: str) -> int:
        """A stat as a number, 0 where it is none."""
        value = self.stats.get(stat, 0)
        return value if isinstance(value, int) else 0


@dataclass(frozen=True, eq=False)
class HostEvents:
    """What serves requests on one host; events without a group are left out.

    ``begin_ps`` and ``end_ps`` are those of all events of a group. ``parents`` are groups whose
    work led to that of a group, ``children`` the other way round; ascending.
    """

    named: dict[str, list[Event]]
    seen: frozenset[str]
    """The names of events, also of those without a group."""
    roots: list[Event]
    begin_ps: dict[int, int]
    end_ps: dict[int, int]
    parents: dict[int, list[int]]
    children: dict[int, list[int]]
    has_groups: bool
    left_out: int
    """How many links between groups are not among these."""

    def of(self, names: Iterable[str]) -> Iterator[Event]:
        """The events called so, name after name."""
        for name in names:
            yield from self.named.get(name, ())


def host_events(profile: Profile) -> HostEvents:
    """The events of the host's threads: of an XSpace the first ``/host:CPU``.

    Raises InputError when the profile cannot be read.
    """
    trace, groups = trace_of(profile), groups_of(profile)
    first = [n for n, plane in enumerate(trace.planes) if plane.name == _HOST][:1]
    lines = [line for line in trace.lines if line.plane in first and line.last > line.first]
    wanted = np.array([*(name in _NAMES for name in trace.name.values), False])
    events = [line.first + np.flatnonzero(wanted[trace.name.codes[line.events]]) for line in lines]
    chosen = np.concatenate([np.zeros(0, np.int64), *events])
    seen = frozenset(filter(None, trace.name.take(chosen).to_list()))
    stats, marked = _stats(profile, lines, chosen)
    chosen = np.unique(np.concatenate([chosen, marked]))
    result: dict[str, list[Event]] = defaultdict(list)
    roots = []
    is_marked = np.isin(chosen, marked)
    for place, is_root in zip(chosen.tolist(), is_marked.tolist(), strict=True):
        at = int(groups.place[place])
        if at < 0:
            continue
        event = Event(
            trace.name[place] or "", int(groups.ids[at]), int(trace.start[place]),
            int(trace.end[place]), stats.get(place, {}),
        )  # fmt: skip
        if event.name in _NAMES:
            result[event.name].append(event)
        if is_root:
            roots.append(event)
    begin, end = _windows(profile, lines)
    links, left_out = profile.step_links()
    parents: dict[int, list[int]] = defaultdict(list)
    children: dict[int, list[int]] = defaultdict(list)
    for parent, child in links.tolist():
        parents[child].append(parent)
        children[parent].append(child)
    return HostEvents(
        dict(result), seen, roots, begin, end, dict(parents), dict(children),
        profile.is_grouped() is False, left_out,
    )  # fmt: skip


def _stats(
    profile: Profile, lines: list[TraceLine], chosen: Int64Array
) -> tuple[dict[int, dict[str, Value]], Int64Array]:
    """The stats of the chosen events, the first of each name; and the requests that a program
    marked itself: a root of level -1, or one of a model server.
    """
    trace = trace_of(profile)
    table = profile.typed_stats(_STATS)
    place = trace.places(table.array("event_id"))
    on_host = np.zeros(place.size, np.bool_)
    for line in lines:
        on_host |= (place >= line.first) & (place < line.last)
    names, texts = table.names("name"), table.names("text")
    level, is_number = table.array("integer"), table.is_valid("integer")
    root = on_host & (names.codes == names.code_of("_r")) & is_number
    serves = np.array([*(name.startswith(SERVER) for name in trace.name.values), False])
    of_server = serves[trace.name.codes[np.maximum(place, 0)]] if trace.size else root
    marked = np.unique(place[root & ((level == -1) | ((level == 1) & of_server))])
    rows = np.flatnonzero(on_host & np.isin(place, np.concatenate([chosen, marked])))
    result: dict[int, dict[str, Value]] = {}
    for row in rows.tolist():
        text = texts[row]
        value: Value = int(level[row]) if is_number[row] else text or ""
        result.setdefault(int(place[row]), {}).setdefault(names[row] or "", value)
    return result, marked


def _windows(profile: Profile, lines: list[TraceLine]) -> tuple[dict[int, int], dict[int, int]]:
    """When the first event of each group began, and the last ended."""
    trace, groups = trace_of(profile), groups_of(profile)
    begin = np.full(groups.ids.size, np.iinfo(np.int64).max)
    end = np.full(groups.ids.size, np.iinfo(np.int64).min)
    for line in lines:
        at = groups.place[line.events]
        known = at >= 0
        np.minimum.at(begin, at[known], trace.start[line.events][known])
        np.maximum.at(end, at[known], trace.end[line.events][known])
    used = np.flatnonzero(end >= begin)
    ids = groups.ids[used].tolist()
    return (
        dict(zip(ids, begin[used].tolist(), strict=True)),
        dict(zip(ids, end[used].tolist(), strict=True)),
    )


def module_runs(profile: Profile) -> Iterator[tuple[int, Span, int]]:
    """The runs of programs on the TensorCores: group, span, and the program's id."""
    trace, groups = trace_of(profile), groups_of(profile)
    said = type_stats_of(profile)
    own = profile.typed_stats(frozenset(("program_id",)))
    place = trace.places(own.array("event_id"))
    values, is_number = own.array("integer"), own.is_valid("integer")
    for line in trace.lines:
        core = trace.planes[line.plane].name.removeprefix(TPU_PREFIX)
        if not core.isdigit() or line.name != _MODULES or line.last <= line.first:
            continue
        events = np.arange(line.first, line.last)
        here = np.flatnonzero((place >= line.first) & (place < line.last))
        stated = dict(zip(place[here].tolist(), np.where(is_number, values, 0)[here].tolist()))  # noqa: B905
        kinds = types_of(profile, trace.rows(events)).tolist()
        for event, kind in zip(events.tolist(), kinds, strict=True):
            at = int(groups.place[event])
            if at < 0:
                continue
            program = stated.get(event)
            if program is None:
                program = _program(said.get(kind, {}).get("program_id"), trace.name[event] or "")
            span = Span(Part.DEVICE_COMPUTE, int(trace.start[event]), int(trace.end[event]))
            yield int(groups.ids[at]), span, program


def _program(stated: str | None, name: str) -> int:
    """The number of a program, from the stat of its kind or its name, as in ``jit_f(77)``."""
    text = stated if stated is not None else name.removesuffix(")").rpartition("(")[2]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0


def other_devices(profile: Profile) -> Iterator[tuple[int, Span]]:
    """What devices other than TPUs did for each group: overlapping work of one kind is one span."""
    trace, groups, activity = trace_of(profile), groups_of(profile), activity_of(profile)
    lines = [
        line
        for line in trace.lines_on(DEVICE)
        if not trace.planes[line.plane].name.startswith(TPU_PREFIX)
    ]
    for kind, part in _PARTS.items():
        events = [line.first + np.flatnonzero(activity[line.events] == kind) for line in lines]
        chosen = np.concatenate([np.zeros(0, np.int64), *events])
        at = groups.place[chosen]
        order = np.argsort(at, kind="stable")
        order = order[at[order] >= 0]
        chosen, at = chosen[order], at[order]
        for mine in _split(chosen, at):
            group = int(groups.ids[groups.place[mine[0]]])
            for begin, end in zip(*_merged(trace.start[mine], trace.end[mine]), strict=True):
                yield group, Span(part, begin, end)


def _split(values: Int64Array, by: AnyArray) -> list[Int64Array]:
    return np.split(values, np.flatnonzero(by[1:] != by[:-1]) + 1) if values.size else []


def _merged(start: Int64Array, end: Int64Array) -> tuple[list[int], list[int]]:
    begins, ends = union(start, end)
    return begins.tolist(), ends.tolist()


def batching_settings(profile: Profile) -> list[tuple[str, Value]]:
    """The stats of the second of the two snapshots that TensorFlow's metrics have in a profile."""
    trace = trace_of(profile)
    planes = [n for n, plane in enumerate(trace.planes) if plane.name == _STREAMZ][:1]
    lines = [line for line in trace.lines if line.plane in planes][:1]
    if not lines or lines[0].last - lines[0].first != 2:
        return []
    stats = profile.stats_of(trace.rows(np.array([lines[0].last - 1])))
    return [(name or "", value or "") for name, value in stats.each("name", "value")]
