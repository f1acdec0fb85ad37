"""What the events of a format are: rules that a format declares, each with one meaning for all.

Most of it is in the tables themselves. ``planes.kind`` says what a plane is (device, host, other)
and ``lines`` which threads or streams it has; ``counters`` are values over time; ``flows`` are
arrows, of which those from a host to a device link launches to work; ``steps`` and
``events.step_id`` mark steps; ``module_runs`` are runs of programs; ``allocator_events`` is
memory. Their times are ps on one clock, whose zero is `Reader.zero_ps` on the file's own clock and
`Reader.start_ns` on that of the world. Stats called as upstream calls them (``tf_op``, ``hlo_op``,
``program_id``, ``is_eager``, ``_ipl_stage_id``, ``device_offset_ps``, ...; ``xplane_schema.cc`` of
tsl) mean what they mean there, whatever the format.

What the tables leave open, a reader declares in its `EventRules`. A rule reads columns and gives
columns: no event is ever an object. What is not declared is not known, and nothing is made of it:
events are then known by their names alone, launches by arrows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from peakline.arrays import Int32Array, UInt8Array
from peakline.tables.columns import Columns, Names
from peakline.tables.table_source import TableSource


def typed_stats(stats: Columns, wanted: AbstractSet[str]) -> Columns:
    """The rows of ``event_stats`` called ``wanted``: see `Profile.typed_stats`.

    A text that reads as a number is one.
    """
    name = stats.names("name")
    codes = [code for code, text in enumerate(name.values) if text in wanted]
    rows = np.flatnonzero(np.isin(name.codes, codes))
    value = stats.names("value").take(rows)
    used, place = np.unique(value.codes, return_inverse=True)
    integer, real = np.zeros(used.size, np.int64), np.zeros(used.size, np.float64)
    kind = np.zeros(used.size, np.uint8)
    for number, code in enumerate(used.tolist()):
        if code < 0:
            continue
        text = value.values[code]
        try:
            integer[number] = wrap(int(text))
            kind[number] = 1
        except ValueError:
            try:
                real[number] = float(text)
                kind[number] = 2
            except ValueError:
                kind[number] = 3
    kinds = kind[place]
    return Columns(
        {
            "event_id": stats.array("event_id")[rows],
            "name": name.take(rows),
            "integer": integer[place],
            "real": real[place],
            "text": Names(np.where(kinds == 3, value.codes, -1).astype(np.int32), value.values),
        },
        {"integer": kinds == 1, "real": kinds == 2},
    )


def wrap(value: int) -> int:
    """``value`` reduced to a signed 64-bit integer."""
    return (value + 2**63) % 2**64 - 2**63


MALLOC, CACHING = "malloc", "caching"
"""Allocators that `EventRules.allocator_of` may name: that of the C library, which has no pool, and
PyTorch's for devices."""


class EventKind(IntEnum):
    """What a file says of an event, beside its name."""

    UNSTATED = 0
    NO_WORK = 1
    """No work of its line: a mark, an arrow's end, a wait that the profiler made up."""
    RUNTIME_CALL = 2
    """A call of a device's runtime or driver."""
    ANNOTATION = 3
    """What a program calls a stretch of its own code, which says nothing of what it does there."""
    OP = 4
    """The execution of an op of the framework on a host."""
    KERNEL = 5
    """A kernel on a device, whatever it is called."""
    LAUNCH = 6
    """What a host does to hand an op to a device, called as the op is."""
    COPY = 7
    """A copy from or to a device, or within it, whatever it is called."""


class StatedOps(NamedTuple):
    """The ops that events are the executions of, as the file states them.

    ``op`` is for every row of ``events`` the place in ``ops`` (-1: none is stated) of a name and
    type (empty: not known). ``calls``: an op may run others within itself, so that the innermost
    does the work.
    """

    op: Int32Array
    ops: Sequence[tuple[str, str]]
    calls: bool


@dataclass(frozen=True)
class LinkStats:
    """Stats by whose values a launch and the work that it caused belong together.

    An event that has the whole numbers ``cause`` led to those whose ``target`` are equal, in this
    order. 0 as the last stands where there is no number, unless it ``has_zero``. ``source`` is what
    `peakline.trace.links.Links` calls such links. The stat ``device``, where there is one, says in
    the launch also the number at the end of the name of the plane on which the work ran.
    ``is_handed_on``: such numbers also link host threads that hand work to one another.
    """

    source: str
    cause: tuple[str, ...]
    target: tuple[str, ...]
    device: str = ""
    has_zero: bool = False
    is_handed_on: bool = False


Dim = tuple[int, int, int]


class LaunchParameters(NamedTuple):
    """How a kernel was launched: ``grid`` in blocks, ``block`` in threads, ``registers`` of a
    thread, shared memory of a block in bytes, the achieved or estimated occupancy in percent.

    Where a parameter is not known it is 1 (dimensions) or 0.
    """

    grid: Dim = (1, 1, 1)
    block: Dim = (1, 1, 1)
    registers: int = 0
    static_shared: int = 0
    dynamic_shared: int = 0
    occupancy_percent: float = 0.0


@dataclass(frozen=True)
class LaunchStats:
    """The stats of a kernel's run that say how it was launched.

    ``parse`` takes the texts of ``stats`` in their order, empty for one that a run lacks; it is
    called once per distinct combination. ``is_on_every_kernel``: a run without the first of them
    is none of a kernel; else every work of a stream is one, but copying and setting memory.
    """

    stats: tuple[str, ...]
    parse: Callable[[Sequence[str]], LaunchParameters]
    is_on_every_kernel: bool = False


_MOST_RANKS = 2**31
"""No job has more processes."""


def numbers_of(value: object) -> tuple[int, ...]:
    """The numbers of processes in a list, or in the text of one; none where it holds anything
    else.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    numbers = value if isinstance(value, list) else []
    is_sound = all(type(one) is int and 0 <= one < _MOST_RANKS for one in numbers)
    return tuple(numbers) if is_sound else ()


class ProcessGroup(NamedTuple):
    """A group of processes whose collectives a profile holds, as its file lists them: ``ranks`` by
    their numbers in the whole job (empty: not recorded), ``size`` how many (-1: not recorded),
    ``backend`` the text that says which library carries its messages.
    """

    name: str
    ranks: tuple[int, ...] = ()
    size: int = -1
    backend: str = ""


@dataclass(frozen=True)
class CollectiveStats:
    """The names of the stats that describe a collective; empty for what is not recorded.

    ``record`` is the event of a host around the launch of a collective's kernels, whose
    stats newer files have on the kernels too. ``name`` is which collective it is,
    ``group`` which processes take part (``ranks``: a list of their numbers; ``size``: how many;
    ``first_rank`` and ``rank_stride``: the same where they are evenly apart), ``sequence`` the
    number of the collective in its group, the same on all ranks, ``identity`` a number that is the
    same on all ranks and no other collective's, ``elements_in`` and ``elements_out`` what it takes
    and gives, of the data type ``data_type``. ``source`` and ``target`` are the process that a
    message comes from and goes to, by its number in the whole job.

    ``call`` matches the names of the events of a host that enqueue a collective, and ``work`` those
    of the events in which a host runs one itself, on whatever thread; both are described by their
    `InputStats`. The first group of ``work``'s match is the library, as in `ProcessGroup.backend`.
    The stat ``arguments`` of a call is a list of texts, of which the one at ``peer_argument`` is
    the place in the group of the other process of a message. ``waits`` matches the calls, these and
    others, that do nothing by themselves but wait for such work.
    """

    record: str = ""
    name: str = ""
    group: str = ""
    ranks: str = ""
    size: str = ""
    first_rank: str = ""
    rank_stride: str = ""
    sequence: str = ""
    identity: str = ""
    elements_in: str = ""
    elements_out: str = ""
    data_type: str = ""
    source: str = ""
    target: str = ""
    arguments: str = ""
    peer_argument: int = 0
    call: re.Pattern[str] | None = None
    work: re.Pattern[str] | None = None
    waits: re.Pattern[str] | None = None


@dataclass(frozen=True)
class InputStats:
    """The names of the stats that describe the inputs of an op's execution, a list with an entry
    for each: ``dims`` and ``strides`` are lists of numbers (of elements), ``types`` texts.
    """

    dims: str
    strides: str
    types: str


@dataclass(frozen=True)
class FunctionCalls:
    """Events that are calls of functions compiled by the framework: ``call`` matches their names,
    and the stat ``traced`` counts how often the function was traced so far. The first call
    prepares the function on the runtime's side.
    """

    call: re.Pattern[str]
    traced: str


class PlaneNames(NamedTuple):
    """The names of the planes of the profiler of XLA and TensorFlow (``xplane_schema.cc`` of tsl):
    that of the threads which run ops, and how those of devices begin.
    """

    host_threads: str = "/host:CPU"
    gpu: str = "/device:GPU:"
    tpu: str = "/device:TPU:"


@dataclass(frozen=True)
class EventRules:
    """What a format declares of its events; each left out where the format does not say it.

    - ``kinds``: for every row of ``events`` an `EventKind`.
    - ``ops``: see `StatedOps`; None also where a file of the format states none.
    - ``links``: from launches to work, the surest first; of those with the first's source alone
      the stats are read first.
    - ``launches``, ``collectives``, ``inputs``, ``function_calls``: see their types.
    - ``gradient_number``: the stat whose whole number an op of the forward pass shares with the
      part of the backward pass that computes its gradients.
    - ``nested_devices``: the names of devices of which the time of an op holds that of the ops in
      it, as a host's thread does.
    - ``planes``: the names of planes, where they say what a plane is.
    - ``allocator_of``: by the name of an allocator which it is (`MALLOC`, `CACHING`), or nothing.
    - ``recorders``: the programs whose own profilers write this format, with options that
      advice may name.
    """

    kinds: Callable[[TableSource], UInt8Array] | None = None
    ops: Callable[[TableSource], StatedOps | None] | None = None
    links: tuple[LinkStats, ...] = ()
    launches: LaunchStats | None = None
    collectives: CollectiveStats | None = None
    inputs: InputStats | None = None
    function_calls: FunctionCalls | None = None
    gradient_number: str = ""
    nested_devices: re.Pattern[str] | None = None
    planes: PlaneNames | None = None
    allocator_of: Callable[[str], str] | None = None
    recorders: frozenset[str] = frozenset()
