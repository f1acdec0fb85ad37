"""Input pipelines: their stages, what each one costs, who waits for it, and which one is too slow.

A stage is an iterator of tf.data (``Iterator::Root::Prefetch::BatchV2``: Prefetch takes from
BatchV2, and Root from Prefetch), a stage that says so itself (stats ``_ipl_stage_*``), an enqueue
to a TPU's infeed, or the iterator of PyTorch's DataLoader. Iterators of one name are one stage,
whichever dataset they belong to. How iterators are connected is said in
``convert/xplane_to_tf_data_stats.cc`` of openxla/xprof: by their names and, across threads, by
time: while a prefetching iterator waits, the one below it works on a thread of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Columns, Profile
from peakline.tables.once import once
from peakline.tables.tables import columns_of_rows
from peakline.timing.ops.names import TENSORFLOW, parse_op_name
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.intervals import Intervals, covered, intersection, total, union, without

ENQUEUE, DEMANDED, ADVANCED = "Enqueue", "Demanded file read", "Advanced file read"
PREPROCESSING, UNKNOWN = "Preprocessing", "Unknown"
_STATED = {"enqueue": ENQUEUE, "read": DEMANDED, "preprocessing": PREPROCESSING, "unknown": UNKNOWN}
"""What a stage of an input pipeline may say of itself."""
_READERS = (
    "::TFRecord", "::TextLine", "::FixedLengthRecord", "::SSTable", "::RecordIO", "::ArrayRecord",
)  # fmt: skip
_ADVANCED = ("::MemoryReader", "::MemoryWriter", "::Interleave", "::Prefetch", "::ParallelMap")


def is_enqueue(op_type: str) -> bool:
    """Whether ops of this type send data to a TPU's infeed queue."""
    return op_type.startswith("InfeedEnqueue")


def input_category(name: str, op_type: str) -> str | None:
    """What an op is for, None for one that brings no data."""
    stated = _STATED.get(op_type.lower())
    if stated is not None:
        return stated
    if is_enqueue(op_type) or op_type == "MemcpyHToD":
        return ENQUEUE
    if op_type != "Dataset":
        return None
    if not name.endswith(_READERS):
        return PREPROCESSING
    return ADVANCED if any(part in name for part in _ADVANCED) else DEMANDED


SLOW_CALL_PS = 50_000_000
"""A pipeline none of whose calls takes longer is fast enough: 50 us, from
https://www.tensorflow.org/guide/data_performance_analysis."""
SLOW_SHARE = 0.05
"""Nor does one hold a program up that waits for it less than this share of the time between its
first call and the end of its last: XProf's threshold of what is input-bound."""
_ITERATOR = "Iterator::"
_LOADER = "enumerate(DataLoader)"
_SOURCE, _PREPROCESSING, _ENQUEUE, _OTHER = "source", "preprocessing", "enqueue", "other"
_CATEGORIES = {
    "Enqueue": _ENQUEUE, "Demanded file read": _SOURCE, "Preprocessing": _PREPROCESSING,
}  # fmt: skip
_AHEAD = ("Prefetch", "ParallelMap", "ParallelInterleave", "MapAndBatch", "ParallelBatch")
"""Iterators that have threads of their own, and else only hand on what those have made."""
_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}
"""Ops of ``tf.numpy_function``, ``tf.py_function`` and ``from_generator``: they take Python's lock
(tensorflow/python/lib/core/py_func.cc). Threads of the pipeline's pool run them, in no call of the
stage; while the program waits for its input, it runs none itself."""
_TRIFLE = 0.2
"""Below this share of the time that a stage holds its program up, what ops do does not say why."""
_STAGE_NAME, _STAGE_CATEGORY = "_ipl_stage_name", "_ipl_stage_category"


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a pipeline; times are ps.

    ``parent`` is the stage that takes its elements. ``lengths`` are its calls' durations,
    ascending, ``self_ps`` their sum without the time in which the stages below worked or were
    waited for. ``wait_ps`` is how long the parent's calls waited for this one; of a stage without
    a parent all its time. ``blocking_ps`` is how long the program waited and this stage was the
    one that it waited for in the end: the largest of a pipeline is its bottleneck, unless the
    pipeline is fast enough (`SLOW_CALL_PS`, `SLOW_SHARE`).
    """

    name: str
    parent: str | None
    category: str
    lengths: Int64Array
    self_ps: int
    wait_ps: int
    blocking_ps: int
    is_bottleneck: bool = False
    why: str = ""
    python_ps: int = 0
    ops_ps: int = 0

    @property
    def is_python(self) -> bool:
        """Whether functions of Python hold it up: they take most of its ops' time, which is no
        trifle (`_TRIFLE`). Python's lock lets one of them run, on however many threads.
        """
        return 2 * self.python_ps > max(self.ops_ps, 2 * _TRIFLE * self.blocking_ps)


_OPENED = re.compile(r"\[\d+\](?=::)")


@dataclass(eq=False)
class _Calls:
    """The calls of one stage (places in the trace), and the time that they cover together."""

    name: str
    events: Int64Array
    category: str
    parent: str | None = None
    time: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@once
def input_stages(profile: Profile) -> tuple[Stage, ...]:
    """The stages of all pipelines of a host, each pipeline from its consumer down.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    calls = {call.name: call for call in [*_named(trace), *_declared_calls(profile, trace)]}
    for call in calls.values():
        call.time = union(trace.start[call.events], trace.end[call.events])
        if call.parent is None and call.name.startswith(_ITERATOR):
            call.parent = _above(call.name, calls)
    below: dict[str | None, list[_Calls]] = {}
    for call in calls.values():
        below.setdefault(call.parent, []).append(call)
    for name, call in calls.items():
        if call.category == _PREPROCESSING and name.startswith(_ITERATOR) and name not in below:
            call.category = _SOURCE
    result: list[Stage] = []
    for root in sorted(below.get(None, []), key=lambda call: (-total(call.time), call.name)):
        result += _pipeline(profile, trace, root, below)
    return tuple(result)


def columns_of(profile: Profile) -> Columns:
    """The table ``input_pipeline``."""
    return columns_of_rows(
        "input_pipeline",
        (
            (
                stage.name, stage.parent, stage.category, stage.lengths.size,
                int(stage.lengths.sum()), stage.self_ps, stage.wait_ps,
                stage.lengths[0], _rank(stage.lengths, 0.5), _rank(stage.lengths, 0.95),
                stage.lengths[-1], stage.is_bottleneck,
            )
            for stage in input_stages(profile)
        ),
    )  # fmt: skip


def _rank(lengths: Int64Array, share: float) -> int:
    """The least length that so large a share of all does not exceed."""
    return int(lengths[max(int(np.ceil(share * lengths.size)) - 1, 0)])


def _named(trace: Trace) -> list[_Calls]:
    """Stages that are known by the names of their events."""
    kinds: dict[int, tuple[str, str]] = {}
    for code, name in enumerate(trace.name.values):
        if name.startswith(_ITERATOR):
            # Repeat and interleave number the iterators that they open one after the other.
            kinds[code] = _OPENED.sub("", name), _PREPROCESSING
        elif name.startswith(_LOADER):
            kinds[code] = name, _OTHER
        elif "InfeedEnqueue" in name and is_enqueue(parse_op_name(name).op_type):
            kinds[code] = name, _ENQUEUE
    if not kinds:
        return []
    mask = np.zeros(len(trace.name.values) + 1, np.bool_)
    mask[list(kinds)] = True
    events = np.concatenate(
        [np.zeros(0, np.int64)]
        + [
            line.first + np.flatnonzero(mask[trace.name.codes[line.events]])
            for line in trace.lines_on(HOST)
        ]
    )
    codes = trace.name.codes[events]
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(mask.size + 1))
    parts: dict[tuple[str, str], list[Int64Array]] = {}
    for code, stage in kinds.items():
        if bounds[code + 1] > bounds[code]:
            parts.setdefault(stage, []).append(events[order[bounds[code] : bounds[code + 1]]])
    return [
        _Calls(name, np.sort(np.concatenate(own)), category)
        for (name, category), own in parts.items()
    ]


def _declared_calls(profile: Profile, trace: Trace) -> list[_Calls]:
    """Stages that say so themselves; the one around a stage on its thread takes its elements."""
    if trace.source != "events" or "event_stats" not in profile.tables:
        return []
    stats = profile.typed_stats(frozenset((_STAGE_NAME, _STAGE_CATEGORY)))
    text, name = stats.names("text"), stats.names("name")
    place = trace.places(stats.array("event_id"))
    known = (text.codes >= 0) & (place >= 0)
    named = known & (name.codes == name.code_of(_STAGE_NAME))
    if not named.any():
        return []
    categories = {
        int(event): text.values[code]
        for event, code in zip(
            *(part[known & ~named].tolist() for part in (place, text.codes)), strict=True
        )
    }
    stage_of = np.full(trace.size, -1, np.int32)
    stage_of[place[named]] = text.codes[named]
    parent = nesting_of(profile).parent
    result = []
    for code in np.unique(text.codes[named]).tolist():
        events = np.sort(place[named & (text.codes == code)])
        first = int(events[0])
        category = input_category("", categories.get(first, ""))
        above = int(parent[first])
        while above >= 0 and stage_of[above] in {-1, code}:
            above = int(parent[above])
        consumer = text.values[int(stage_of[above])] if above >= 0 else None
        own = _CATEGORIES.get(category or "", _OTHER)
        result.append(_Calls(text.values[code], events, own, consumer))
    return result


def _above(name: str, calls: dict[str, _Calls]) -> str | None:
    """The nearest stage that this one's name goes through."""
    while "::" in name:
        name = name.rpartition("::")[0]
        if name in calls:
            return name
    return None


def _pipeline(
    profile: Profile, trace: Trace, root: _Calls, below: dict[str | None, list[_Calls]]
) -> list[Stage]:
    """The stages of one pipeline, each before those that it takes from."""
    slowest = int((trace.end[root.events] - trace.start[root.events]).max())
    made: list[Stage] = []
    blocking: list[Intervals] = []
    waiting: list[tuple[_Calls, _Calls | None, Intervals]] = [(root, None, root.time)]
    while waiting:
        call, parent, blocked = waiting.pop()
        sources = below.get(call.name, [])
        length = trace.end[call.events] - trace.start[call.events]
        own = length.sum() - _time_in(profile, call, sources).sum()
        wait = length.sum() if parent is None else _time_in(profile, parent, [call]).sum()
        inner: list[tuple[_Calls, _Calls | None, Intervals]] = [
            (one, call, intersection(blocked, one.time)) for one in sources
        ]
        rest = blocked
        for _, _, times in inner:
            rest = without(rest, times)
        made.append(
            Stage(call.name, call.parent, call.category, np.sort(length), int(own), int(wait),
                  total(rest))
        )  # fmt: skip
        blocking.append(rest)
        waiting += sorted(inner, key=lambda entry: entry[0].name, reverse=True)
    worst = max(made, key=lambda stage: stage.blocking_ps)
    waited = total(root.time)
    if slowest <= SLOW_CALL_PS or not waited:  # a call of no time is in no interval
        return made
    if waited < SLOW_SHARE * int(root.time[1][-1] - root.time[0][0]):
        return made
    at = made.index(worst)
    python, ops = _op_times(trace)
    made[at] = _accused(worst, waited)
    made[at] = replace(
        made[at],
        python_ps=total(intersection(blocking[at], python)),
        ops_ps=total(intersection(blocking[at], ops)),
    )
    return made


def _op_times(trace: Trace) -> tuple[Intervals, Intervals]:
    """When ops of the host ran functions of Python, and when any op ran, on any thread."""
    names = [parse_op_name(name) for name in trace.name.values]
    python = [one.op_type in _PYTHON for one in names]
    ops = [one.category == TENSORFLOW and bool(one.op_type) for one in names]
    return _times_of(trace, python), _times_of(trace, ops)


def _times_of(trace: Trace, of_names: list[bool]) -> Intervals:
    """When events of the host ran whose names are marked."""
    mask = np.array([*of_names, False], np.bool_)
    events = [
        line.first + np.flatnonzero(mask[trace.name.codes[line.events]])
        for line in trace.lines_on(HOST)
    ]
    event = np.concatenate([np.zeros(0, np.int64), *events])
    return union(trace.start[event], trace.end[event])


def _accused(stage: Stage, waited_ps: int) -> Stage:
    share = 100.0 * stage.blocking_ps / waited_ps
    why = f"{share:.0f}% of the time that the program waited for input, it waited for this stage"
    if stage.name.rpartition("::")[2].startswith(_AHEAD):
        why += ", whose own threads did the work, or had no processor to do it"
    return replace(stage, is_bottleneck=True, why=why)


def _time_in(profile: Profile, call: _Calls, sources: list[_Calls]) -> Int64Array:
    """Per call the time in which stages of ``sources`` worked: those within it on its thread; in
    a call without any, those of other threads, which it waits for.
    """
    trace, nesting = trace_of(profile), nesting_of(profile)
    begin, end = trace.start[call.events], trace.end[call.events]
    result = np.zeros(call.events.size, np.int64)
    if not sources:
        return result
    alone = np.ones(call.events.size, np.bool_)
    is_call = np.zeros(trace.size, np.bool_)
    is_call[call.events] = True
    for one in sources:
        within = nesting.around(one.events, is_call)
        mine = within >= 0
        at = np.searchsorted(call.events, within[mine])
        inner = one.events[mine]
        np.add.at(result, at, trace.end[inner] - trace.start[inner])
        alone[at] = False
    times = zip(*(one.time for one in sources), strict=True)
    elsewhere = union(*(np.concatenate(part) for part in times))
    result[alone] = covered(elsewhere, begin[alone], end[alone])
    return result
