"""Steps: the annotations that training loops put around each step, and what belongs to them.

In PyTorch's traces they are turns of a training loop, of which some are not whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.chrome_trace.phases import read_step_category
from peakline.formats.chrome_trace.stated import RUN, RUN_CATEGORY
from peakline.formats.chrome_trace.trace import Trace
from peakline.formats.common.annotations import counted, outermost, steps_columns, turns
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import positions

_ANNOTATION = "user_annotation"
_OPERATORS = ("cpu_op", "Operator")
_NUMBER = re.compile(r"(?<![#\d])[#\d]++$")
_FEWEST = 2
"""Of so many steps of a name the last can be compared with others."""
_FRAMEWORK = re.compile(
    r"[^#]*#|(?:nccl|gloo|mpi|ucc|c10d|aten|torch|autograd|ProcessGroup|PyTorch|FSDP|inductor|triton"
    r"|DistributedDataParallel|Torch-Compiled|CompiledFunction|\[pl\])(?![a-z_])"
)
"""Annotations that PyTorch and its libraries make themselves."""


def annotated(trace: Trace) -> Int64Array:
    """The rows of the annotations that a program made once a turn of its loop.

    Those of one thread that lie in no other one, whose name comes twice or more and is neither the
    framework's nor that of a part of a turn; of several threads of a process the one with the
    longest time. What several threads do is no loop of one, but requests that they serve.
    """
    events, result = trace.events, trace.collected
    code = result.categories.code_of(_ANNOTATION)
    rows = np.flatnonzero((events.category == code) & events.timed & (events.duration > 0))
    best: dict[int, tuple[int, AnyArray]] = {}
    values = result.names.values
    for line in np.unique(events.line[rows]).tolist():
        own = rows[events.line[rows] == line]
        own = outermost(own, events.start, events.duration)
        own = turns(own, Names(events.name[own], values), _FRAMEWORK.match)
        plane = int(trace.planes.plane_of_line[line])
        elsewhere = trace.planes.plane_of_line[events.line[rows]] == plane
        elsewhere &= events.line[rows] != line
        own = own[~np.isin(events.name[own], events.name[rows[elsewhere]])]
        length = int(events.duration[own].sum())
        if length > best.get(plane, (0, own))[0]:
            best[plane] = length, own
    return np.concatenate([np.zeros(0, np.int64), *(own for _, own in best.values())])


def cut_off(trace: Trace, rows: AnyArray) -> BoolArray:
    """Which of the steps ``rows``, in order of time, the record does not hold whole.

    One that begins and never ends; and the last of its thread and name if what it ran is only the
    begin of what every one before it ran, or lacks an operator that each of two or more before it
    has: a loop was left in the middle of it, or ended before the profiler's schedule did.
    """
    events = trace.events
    result: BoolArray = trace.is_open[rows]
    values = trace.collected.names.values
    codes = [trace.collected.categories.code_of(name) for name in _OPERATORS]
    # Before PyTorch 1.11 its own marks (``ProfilerStep#5``) have the category of operators.
    is_mark = np.array([*("#" in value for value in values), False], np.bool_)
    is_op = np.isin(events.category, codes) & events.timed & ~is_mark[events.name]
    like: dict[tuple[int, str], list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        name = int(events.name[row])
        stem = _NUMBER.sub("", values[name]) if name >= 0 else ""
        like.setdefault((int(events.line[row]), stem), []).append(place)
    ops: dict[int, Int64Array] = {}
    for (line, _), places in like.items():
        if len(places) < _FEWEST:
            continue
        if line not in ops:
            own = np.flatnonzero(is_op & (events.line == line))
            ops[line] = outermost(own, events.start, events.duration)
        first, last = _bounds(trace, ops[line], rows[places])
        if int((last - first).sum()) > 2 * ops[line].size:
            continue  # They lie in each other: what each runs says nothing about the next.
        names = events.name[ops[line]]
        *before, ran = [names[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        begins_so = all(
            one.size > ran.size and np.array_equal(one[: ran.size], ran) for one in before
        )
        lacks = len(before) > 1 and np.setdiff1d(reduce(np.intersect1d, before), ran).size > 0
        result[places[-1]] |= begins_so or lacks
    return result


def _bounds(trace: Trace, ops: Int64Array, rows: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Of the outermost operators ``ops`` of a thread, in order: where those begin that each of the
    steps ``rows`` ran, and where they end.
    """
    events = trace.events
    start, begin = events.start[ops], events.start[rows]
    end = begin + events.duration[rows]
    return np.searchsorted(start, begin), np.searchsorted(start, end)


_PYTORCH = re.compile(r"ProfilerStep#\d+")
_STEP_ID = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps in order of their start: name, interval (ps), and the plane they ran on.

    Those that ``peakline export`` wrote stand in its order, with the ``ids`` that they had;
    ``marked`` are their rows among the events, which are no events of the profile. ``cut_off``
    are those that the record does not hold whole; ``found_by`` is ``mark``, or ``annotation`` for
    a name that the program gave each turn of its loop without a number.
    """

    names: list[str]
    start: Int64Array
    end: Int64Array
    plane: Int32Array
    ids: Int64Array
    marked: Int64Array
    cut_off: BoolArray
    found_by: list[str | None]

    def table(self) -> Columns:
        """The ``steps`` table."""
        found_by = Names.encode(self.found_by)
        return steps_columns(self.ids, self.names, self.start, self.end, found_by, self.cut_off)

    def at(self, plane: AnyArray, time: Int64Array) -> Int32Array:
        """The step that runs on a plane at a time: the one begun last; -1 where none does.

        A step holds its first moment and not its last.
        """
        step = np.full(time.size, -1, np.int32)
        for number in np.unique(self.plane).tolist():
            own = np.flatnonzero(self.plane == number)
            rows = np.flatnonzero(plane == number)
            if not rows.size:
                continue
            place = np.searchsorted(self.start[own], time[rows], side="right") - 1
            inside = (place >= 0) & (time[rows] < self.end[own][place])
            step[rows[inside]] = own[place[inside]]
        return step


def find_steps(trace: Trace) -> Steps:
    """PyTorch's ``ProfilerStep#N`` and events with a step number (JAX's and TensorFlow's).

    PyTorch repeats its annotations on the GPU's lines, around what was launched first; those
    are no steps. Where nothing is numbered, what a program annotated itself once a turn of its
    loop (``record_function("train_step")``).
    """
    events, result = trace.events, trace.collected
    if result.is_own:
        of_step = [
            read_step_category(category) is not None for category in result.categories.values
        ]
        is_step = np.array([*of_step, False], np.bool_)[events.category]
        marked = np.flatnonzero(is_step & events.timed)
        if marked.size:
            return _marked(trace, marked)
    categories = result.categories.values
    on_device = np.array([name.startswith("gpu_") for name in categories] + [False], np.bool_)
    codes = [c for c, name in enumerate(result.names.values) if _PYTORCH.fullmatch(name)]
    rows = np.zeros(0, np.int64)
    if codes:
        rows = np.flatnonzero(np.isin(events.name, codes) & ~on_device[events.category])
    numbered, number = trace.numbered_steps
    labels = {row: result.series.values[code] for row, code in zip(
        numbered.tolist(), number.tolist(), strict=True) if code >= 0}  # fmt: skip
    rows = np.union1d(rows, numbered).astype(np.int64)
    rows = rows[events.timed[rows]]
    found_by = "mark"
    if not rows.size:
        run, session = (texts.code_of(text) for texts, text in (
            (result.names, RUN), (result.categories, RUN_CATEGORY)))  # fmt: skip
        is_run = (events.name == run) & (events.category == session) & events.timed
        rows, found_by = np.flatnonzero(is_run & (run >= 0) & (session >= 0)), "function"
    if not rows.size:
        rows, found_by = annotated(trace), "annotation"
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    names = []
    for row in rows.tolist():
        code = int(events.name[row])
        name = result.names.values[code] if code >= 0 else ""
        names.append(f"{name} {labels[row]}".strip() if row in labels else name)
    plane = trace.planes.plane_of_line[events.line[rows]]
    if found_by != "mark":
        names = _counted_by_process(names, plane)
    return Steps(
        names,
        events.start[rows],
        events.start[rows] + events.duration[rows],
        plane,
        np.arange(rows.size, dtype=np.int64),
        np.zeros(0, np.int64),
        cut_off(trace, rows),
        [found_by] * rows.size,
    )


def _counted_by_process(names: list[str], plane: Int32Array) -> list[str]:
    """The names with their number among their like of the same process."""
    result = list(names)
    for number in np.unique(plane).tolist():
        own = np.flatnonzero(plane == number).tolist()
        for place, text in zip(own, counted(names[k] for k in own), strict=True):
            result[place] = text
    return result


def _marked(trace: Trace, rows: AnyArray) -> Steps:
    """The steps that ``peakline export`` wrote as events ``rows``."""
    events, result = trace.events, trace.collected
    ids = _groups(trace)[rows]
    if (ids < 0).any() or np.unique(ids).size < ids.size:
        ids = np.arange(rows.size, dtype=np.int64)
    names = [result.names.values[code] if code >= 0 else "" for code in events.name[rows].tolist()]
    start = events.start[rows]
    plane = trace.planes.plane_of_line[events.line[rows]]
    end = start + events.duration[rows]
    values = result.categories.values
    said = [read_step_category(values[code]) or (None, False) for code in events.category[rows]]
    cut_off = np.array([is_cut_off for _, is_cut_off in said], np.bool_)
    return Steps(names, start, end, plane, ids, rows, cut_off, [how for how, _ in said])


def _groups(trace: Trace) -> Int64Array:
    """The number of the step that every event names, -1 where it names none."""
    texts = trace.collected.series.values
    numbers = np.array([int(t) if _STEP_ID.fullmatch(t) else -1 for t in texts] + [-1], np.int64)
    rows, number = trace.groups
    result = np.full(trace.events.rows, -1, np.int64)
    result[rows] = numbers[number]
    return result


def steps_of_events(trace: Trace, steps: Steps) -> npt.NDArray[np.signedinteger[Any]]:
    """The id of the step of every event, -1 where none is known.

    An event of the process that the step was annotated in belongs to the step in which it starts,
    on whatever thread. One of another process (a GPU's stream) belongs to the step in which it
    was launched: where the arrow begins whose end is the event's start. What ``peakline export``
    wrote says so itself.
    """
    events = trace.events
    if steps.marked.size:
        step_of_event = _groups(trace)
        step_of_event[~np.isin(step_of_event, steps.ids)] = -1
        return step_of_event
    if not steps.names:
        return np.full(events.rows, -1, np.int32)
    planes = trace.planes.plane_of_line
    planes = _of_one_process(trace, steps, planes)
    step = steps.at(planes[events.line], events.start)
    step[~events.timed] = -1
    flows = trace.flows
    begins = np.flatnonzero(flows["phase"] == ord("s"))
    ends = np.flatnonzero(flows["phase"] == ord("f"))
    at_begin = steps.at(planes[flows["line"][begins]], flows["time"][begins])
    step_of_flow = np.full(int(flows["flow"].max(initial=-1)) + 1, -1, np.int32)
    step_of_flow[flows["flow"][begins]] = at_begin
    launched = step_of_flow[flows["flow"][ends]]
    elsewhere = ~np.isin(planes[flows["line"][ends]], steps.plane)
    ends, launched = ends[elsewhere & (launched >= 0)], launched[elsewhere & (launched >= 0)]
    for line in np.unique(flows["line"][ends]).tolist():
        mine = flows["line"][ends] == line
        order = np.argsort(flows["time"][ends[mine]], kind="stable")
        times, of = flows["time"][ends[mine]][order], launched[mine][order]
        rows = np.flatnonzero(events.line == line)
        place = positions(times, events.start[rows])
        step[rows[place >= 0]] = of[place[place >= 0]]
    return step


def _of_one_process(trace: Trace, steps: Steps, planes: Int32Array) -> Int32Array:
    """The plane of every line; those of processes are one where one alone has steps.

    Kineto records one process and writes threads that it does not know as those of another.
    """
    only = np.unique(steps.plane)
    if only.size != 1 or not trace.planes.is_process[only[0]]:
        return planes
    return np.where(trace.planes.is_process[planes], only[0], planes)
