"""Flows of a trace viewer: arrows from the event that hands work on to the one that takes it.

Sources: ``preprocess_xplane.h``, ``AddFlowsToXplane`` in ``xplane_utils.cc`` and ``XFlow`` in
``xplane_schema.h`` (openxla/xla, ``xla/tsl/profiler/utils``); the names of the categories:
``context_types.cc``. Upstream numbers flows with a hash that differs from run to run; here they
are numbered as they come, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, UInt8Array
from peakline.tables import Columns, Profile
from peakline.tables.joins import mix
from peakline.tables.once import once
from peakline.text import whole_number
from peakline.timing.ops.stat_columns import OpStatColumns, Stat
from peakline.trace.events import DEVICE

IN, OUT = 1, 2
"""Directions; both together are 3."""

CATEGORIES = (
    "", "", "tf_exec", "tfrt_exec", "batch_sched", "PjRt", "as_batch_sched", "tfrt_rt",
    "tpu_embed", "gpu_launch", "batcher", "tpu_stream", "tpu_launch", "pathways_exec",
    "pjrt_library_call", "threadpool_event", "jax_serving", "sparsecore_offload",
)  # fmt: skip
"""The types of contexts by number; the first two say nothing, and another counts as the first."""
_LEGACY, _GPU_LAUNCH, _TPU_STREAM, _TPU_LAUNCH = 1, 9, 11, 12

_PLAIN = ("_pt", "_p", "_ct", "_c", "correlation_id", "flow", "group_id")
_EXECUTOR = ("id", "iter_num")
_QUEUE = ("request_id", "queue_addr")
_LAUNCH = ("device_ordinal", "queue_id", "run_id", "core_type")
_QUEUE_ENDS = frozenset(
    """
    RunProgramRequest HostCallbackRequest TransferH2DRequest TransferPreprocessedH2DRequest
    TransferD2HRequest OnDeviceSendRequest OnDeviceRecvRequest OnDeviceSendRecvLocalRequest
    CustomWait OnDeviceSendRequestMulti OnDeviceRecvRequestMulti PjrtAsyncWait
    """.split()
)
_MASKED_RUNS = frozenset(("DoEnqueueProgram", "CompleteCallbacks", "DoEnqueueContinuationProgram"))
_RUN_MASK = (1 << 27) - 1
_FLOW_MASK = (1 << 56) - 1


@dataclass(frozen=True, eq=False)
class Flows:
    """The flow of every event: its number (-1: none), `IN`, `OUT` or both, and its category."""

    number: Int32Array
    direction: UInt8Array
    category: UInt8Array
    count: int
    is_from_file: bool = False
    """Whether the profile was grouped when it was written, and all flows are its own."""

    def take(self, rows: AnyArray) -> Flows:
        """The flows of ``rows``; a row below 0 has none."""
        there = rows >= 0
        if not self.number.size:
            nothing = np.zeros(rows.size, np.uint8)
            none = np.full(rows.size, -1, np.int32)
            return Flows(none, nothing, nothing, self.count, self.is_from_file)
        return Flows(
            np.where(there, self.number[rows], np.int32(-1)),
            np.where(there, self.direction[rows], np.uint8(0)),
            np.where(there, self.category[rows], np.uint8(0)),
            self.count,
            self.is_from_file,
        )


@once
def flows_of(profile: Profile) -> Flows:
    """The flow of every row of ``events``; made once. An event with several has the last one.

    Raises InputError when the profile cannot be read.
    """
    if "event_types" not in profile.tables:
        # Only XSpaces have flows in stats.
        none = np.zeros(0, np.uint8)
        return Flows(np.zeros(0, np.int32), none, none, 0)
    columns = frozenset(("line_id", "name"))
    events = profile.columns("events", columns)
    names = set(events.names("name").values)
    wanted = set(_PLAIN)
    if names & {"ExecutorState::Process", "TpuExecuteOp"}:
        wanted |= set(_EXECUTOR)
    if names & (_QUEUE_ENDS | {"EnqueueRequestLocked"}):
        wanted |= set(_QUEUE)
    planes = profile.columns("planes").names("name").to_list()
    if names & _MASKED_RUNS or any((name or "").startswith("/device:TPU:") for name in planes):
        wanted |= set(_LAUNCH)
    result = profile.typed_stats(frozenset(wanted))
    stats = OpStatColumns(result.take(result.is_valid("integer")))
    flows = _Numbering(events.rows)
    event, value = stats["flow"].row, stats["flow"].integer
    unsigned = value.view(np.uint64)
    flows.add(
        event, (unsigned >> np.uint64(2)) & np.uint64(_FLOW_MASK), unsigned >> np.uint64(58), 0,
        (unsigned & np.uint64(3)).astype(np.uint8),
    )  # fmt: skip
    lines, kind = profile.columns("lines"), profile.columns("planes").names("kind").to_list()
    is_from_file = bool(profile.is_grouped())
    if not is_from_file:
        is_device = np.array([text == DEVICE for text in kind], np.bool_)
        contexts = _contexts(stats, events, lines, [name or "" for name in planes])
        event, value = stats["correlation_id"].row, stats["correlation_id"].integer
        on_device = is_device[lines.array("plane_id")[events.array("line_id")[event]]]
        flows.add(
            event, value.view(np.uint64), np.full(event.size, _GPU_LAUNCH), 1,
            np.where(on_device, IN, OUT).astype(np.uint8),
        )  # fmt: skip
        for (event, value, category), way in zip(contexts, (OUT, IN), strict=True):
            flows.add(event, value, category, 2, np.full(event.size, way, np.uint8))
    return flows.done(is_from_file=is_from_file)


def _safe(category: AnyArray) -> AnyArray:
    return np.where((category < 0) | (category >= len(CATEGORIES)), 0, category)


_Context = tuple[AnyArray, AnyArray, AnyArray]


def _contexts(
    stats: OpStatColumns, events: Columns, lines: Columns, planes: list[str]
) -> tuple[_Context, _Context]:
    """Producers and consumers: what the file says, and what is made of other stats of old events,
    which replaces it.
    """
    names = events.names("name")
    producers, consumers = [_both(stats["_pt"], stats["_p"])], [_both(stats["_ct"], stats["_c"])]

    def named(wanted: frozenset[str] | set[str]) -> Int64Array:
        is_it = np.array([text in wanted for text in names.values], np.bool_)
        return np.flatnonzero(is_it[names.codes]) if is_it.any() else np.zeros(0, np.int64)

    def tied(
        events: Int64Array,
        stat_names: tuple[str, ...],
        category: int,
        first: AnyArray | None = None,
    ) -> _Context:
        has = np.ones(events.size, np.bool_)
        parts = [] if first is None else [first]
        for name in stat_names:
            there, value = stats[name].at(events)[1], stats[name].integers_at(events)
            if name == "run_id" and first is None:
                value = value & _RUN_MASK
            if name != "core_type":
                has &= there
            parts.append(value)
        key = mix(*(part[has] for part in parts), np.full(int(has.sum()), category))
        return events[has], key, np.full(key.size, category)

    producers.append(tied(named({"ExecutorState::Process"}), _EXECUTOR, _LEGACY))
    consumers.append(tied(named({"TpuExecuteOp"}), _EXECUTOR, _LEGACY))
    producers.append(tied(named({"EnqueueRequestLocked"}), _QUEUE, _TPU_STREAM))
    consumers.append(tied(named(_QUEUE_ENDS), _QUEUE, _TPU_STREAM))
    producers.append(tied(named({"DoEnqueueProgram"}), _LAUNCH, _TPU_LAUNCH))
    consumers.append(tied(named({"CompleteCallbacks"}), _LAUNCH, _TPU_LAUNCH))
    line_name, line_plane = lines.names("name").to_list(), lines.array("plane_id").tolist()
    for line, (name, plane) in enumerate(zip(line_name, line_plane, strict=True)):
        core = planes[plane].removeprefix("/device:TPU:")
        number = whole_number(core)
        if name == "XLA Modules" and core != planes[plane] and number is not None:
            here = np.flatnonzero(events.array("line_id") == line)
            device = np.full(here.size, number, np.int64)
            consumers.append(tied(here, _LAUNCH[1:], _TPU_LAUNCH, device))
    return _later_wins(producers), _later_wins(consumers)


def _both(kind: Stat, number: Stat) -> _Context:
    """Events that have both stats, the number, and the category that the kind stands for."""
    has = kind.at(number.row)[1]
    event = number.row[has]
    return event, number.integer[has].view(np.uint64), _safe(kind.integers_at(event))


def _later_wins(parts: list[_Context]) -> _Context:
    event = np.concatenate([part[0] for part in parts])
    number = np.concatenate([part[1] for part in parts])
    category = np.concatenate([part[2] for part in parts])
    order = np.argsort(event, kind="stable")
    event = event[order]
    last = np.ones(event.size, np.bool_)
    last[:-1] = event[1:] != event[:-1]
    chosen = order[last]
    return event[last], number[chosen], category[chosen]


class _Numbering:
    """Numbers the flows that events name; of several at one event the last added counts."""

    def __init__(self, events: int) -> None:
        self._direction = np.zeros(events, np.uint8)
        self._category = np.zeros(events, np.uint8)
        self._key = np.zeros(events, np.uint64)

    def add(
        self,
        event: Int64Array,
        number: AnyArray,
        category: AnyArray,
        space: int,
        direction: UInt8Array,
    ) -> None:
        """Events and the flow each names; ``space`` is what kind of number it is."""
        category = _safe(category.astype(np.int64))
        of_kind = category if space == 2 else np.zeros(event.size, np.int64)
        self._key[event] = mix(number, of_kind * 4 + space)
        self._category[event] = category
        self._direction[event] = direction | 4

    def done(self, *, is_from_file: bool) -> Flows:
        """All of them, numbered as they come."""
        has = np.flatnonzero(self._direction)
        _, first, place = np.unique(self._key[has], return_index=True, return_inverse=True)
        rank = np.empty(first.size, np.int32)
        rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
        number = np.full(self._direction.size, -1, np.int32)
        number[has] = rank[place]
        direction = self._direction & np.uint8(3)
        return Flows(number, direction, self._category, int(first.size), is_from_file)
