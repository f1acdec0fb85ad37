"""What every event of a trace does: one small number per event, decided once per distinct name."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from peakline.arrays import BoolArray, Int64Array, UInt8Array
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.event_rules import EventKind
from peakline.tables.once import once
from peakline.trace.activity_names import (
    Activity,
    category_activity,
    copy_of,
    device_activity,
    host_activity,
    is_barrier,
    lacks_direction,
)
from peakline.trace.collective_records import collective_kernels
from peakline.trace.device_lines import devices_of
from peakline.trace.events import HOST, PART, Trace, TraceLine, trace_of
from peakline.trace.links import links_of

_GET_NEXT = "tf_data_iterator_get_next"
"""The threads on which ``IteratorGetNext`` of a tf.function waits for a batch, so that none of the
executor does (``IteratorGetNextOp`` in tensorflow/core/kernels/data/iterator_ops.cc); what other
threads of tf.data do goes on whether it is waited for or not."""
_THUNKS = "ThunkExecutor::Execute"
"""What XLA's runtime for CPUs traces wherever it runs a program."""


@once
def activity_of(profile: Profile) -> UInt8Array:
    """An `Activity` for every event of ``trace_of(profile)``.

    Decided by where the event lies (a device's streams or ops, a host's thread) and by its name,
    what the file says of it (`EventKind`), its ``hlo_category`` (TPU), or the kind and label of an
    execution (StepStats). Made once per profile. Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    result = np.zeros(trace.size, np.uint8)
    if not trace.size:
        return result
    on_host = _Table(trace.name, host_activity)
    on_device = _Table(trace.name, device_activity)
    devices = devices_of(profile)
    lines = [trace.lines[place] for device in devices for place, _ in device.lines]
    for line in lines:
        result[line.events] = on_device.of(line.events)[trace.name.codes[line.events]]
    for line in trace.lines_on(HOST):
        result[line.events] = _of_line(line, on_host)[trace.name.codes[line.events]]
    if trace.source == "op_runs":
        _refine_runs(profile, trace, result, lines)
        return result
    kinds = event_kinds(profile)
    if kinds is not None:
        _refine_kinds(trace, result, lines, kinds)
    recorded = collective_kernels(profile)
    result[recorded[result[recorded] == Activity.COMPUTE]] = Activity.COMMUNICATION
    of_tpus = [trace.lines[place] for one in devices if one.is_tpu for place, _ in one.lines]
    if of_tpus:
        _refine_tpu(profile, trace, result, of_tpus)
    if trace.name.code_of(_THUNKS) >= 0:
        _refine_thunks(profile, trace, result)
    if any(lacks_direction(name) for name in trace.name.values):
        _refine_copies(profile, trace, result, lines)
    if not lines:
        # No device's side is recorded: the call's time is the op's own around it, and no launch.
        result[memory_copy_calls(trace)] = Activity.HOST
        _refine_calls(profile, trace, result)
    return result


def _refine_calls(profile: Profile, trace: Trace, result: UInt8Array) -> None:
    """Calls of a host's library of collectives: what they do by themselves is to wait for it.

    Without the library's own work nobody knows how long that is.
    """
    rule = profile.event_rules.collectives
    if rule is None or rule.waits is None or not (result == Activity.COMMUNICATION).any():
        return
    waits = rule.waits
    calls = trace.name.per_row(lambda text: waits.fullmatch(text) is not None, np.bool_)
    result[calls & (result == Activity.HOST_OP)] = Activity.COMMUNICATION


_COPY_CALL = re.compile(r"(?:cu|cuda|hip)Memcpy(?!Peer|Batch)\w*$")


def memory_copy_calls(trace: Trace) -> Int64Array:
    """The calls of a host that copy memory (``cudaMemcpyAsync``), as places in the trace."""
    wanted = np.array([*map(bool, map(_COPY_CALL.match, trace.name.values)), False], np.bool_)
    if not wanted.any():
        return np.zeros(0, np.int64)
    return np.flatnonzero(wanted[trace.name.codes] & trace.within(trace.lines_on(HOST)))


def event_kinds(profile: Profile) -> UInt8Array | None:
    """What the file says of every row of ``events``, an `EventKind`; None where the format does
    not say it.
    """
    kinds = profile.event_rules.kinds
    return kinds(profile) if kinds is not None and "events" in profile.tables else None


def named_activities(profile: Profile) -> Callable[[TraceLine], UInt8Array] | None:
    """What gives of a line of a host's threads an `Activity` per code of a name (the last for no
    name), as `activity_of` decides; None where more than the names counts.
    """
    trace = trace_of(profile)
    if (
        trace.source != "events"
        or profile.event_rules.kinds is not None
        or trace.name.code_of(_THUNKS) >= 0
    ):
        return None
    names = _Table(trace.name, host_activity)
    return lambda line: _of_line(line, names)


def is_xla_line(line: TraceLine) -> bool:
    """Whether a host's thread is one on which XLA runs compiled programs for the CPU."""
    return line.name.startswith("tf_XLA")


def _of_line(line: TraceLine, names: _Table) -> UInt8Array:
    """What the events of a host's thread do, by the code of their name."""
    if line.name.startswith("tf_data"):
        does = np.full(names.size, Activity.INPUT_WORK, np.uint8)
        if line.name.startswith(_GET_NEXT):
            does[names.of(line.events) == Activity.INPUT_WAIT] = Activity.INPUT_WAIT
        return does
    if "ompiler" in line.name or "codegen" in line.name:
        return np.full(names.size, Activity.COMPILE, np.uint8)
    table = names.of(line.events)
    if is_xla_line(line):
        return np.where(table == Activity.HOST, np.uint8(Activity.HOST_OP), table)
    return table


class _Table:
    """An activity per distinct name, made for the names that are looked up."""

    _FEW = 1 << 12
    """So many names are sooner decided than looked for among millions of events."""

    def __init__(self, names: Names, decide: Callable[[str], Activity]) -> None:
        self._names, self._decide = names, decide
        self._known = np.zeros(len(names.values) + 1, np.bool_)
        self._known[-1] = True
        self.size = self._known.size
        self._table = np.zeros(self.size, np.uint8)

    def of(self, events: slice) -> UInt8Array:
        """The activity per code of a name (the last: none), right for those of ``events``."""
        if not self._known.all():
            used = np.full(self.size, self.size <= self._FEW)
            if self.size > self._FEW:
                used[self._names.codes[events]] = True
            for code in np.flatnonzero(used & ~self._known).tolist():
                self._table[code] = self._decide(self._names.values[code])
            self._known |= used
        return self._table


def _refine_kinds(
    trace: Trace, result: UInt8Array, lines: list[TraceLine], kinds: UInt8Array
) -> None:
    """What the file says of events goes before their names."""
    kinds = kinds if trace.row is None else kinds[trace.row]
    result[kinds == EventKind.NO_WORK] = Activity.NOTHING
    result[(kinds == EventKind.RUNTIME_CALL) & (result == Activity.HOST_OP)] = Activity.HOST
    is_annotation = kinds == EventKind.ANNOTATION
    waits = trace.name.per_row(is_barrier, np.bool_)
    waits |= result == Activity.INPUT_WAIT
    result[is_annotation & ~waits] = Activity.NOTHING
    result[(kinds == EventKind.OP) & (result == Activity.HOST)] = Activity.HOST_OP
    # Whatever a kernel is called, even as what is no work elsewhere, it is one.
    unnamed = (kinds == EventKind.KERNEL) & (result == Activity.NOTHING) & trace.within(lines)
    result[unnamed] = Activity.COMPUTE
    result[kinds == EventKind.LAUNCH] = Activity.LAUNCH
    nameless = (kinds == EventKind.COPY) & (result == Activity.COMPUTE)
    result[nameless] = Activity.DEVICE_TO_DEVICE


def _refine_tpu(profile: Profile, trace: Trace, result: UInt8Array, lines: list[TraceLine]) -> None:
    """The compiler records the category of every op of a TPU; a name only its opcode."""
    stats = profile.columns_or_empty("event_type_stats")
    rows = np.flatnonzero(stats.names("name").codes == stats.names("name").code_of("hlo_category"))
    if not rows.size:
        return
    kinds = profile.columns("event_types", frozenset(("type_id", "name")))
    category = dict(stats.take(rows).each("type_id", "value"))
    table = np.zeros(kinds.rows + 1, np.uint8)
    for row, (type_id, name) in enumerate(kinds.each("type_id", "name")):
        if kind := category.get(type_id):
            table[row] = category_activity(kind, name or "")
    events = profile.columns("events", frozenset(("type_id",)))
    type_id, is_known = events.array("type_id"), events.is_valid("type_id")
    for line in lines:
        rows = trace.rows(line.events)
        stated = table[np.where(is_known[rows], type_id[rows], kinds.rows)]
        result[line.events] = np.where(stated > 0, stated, result[line.events])


def _refine_thunks(profile: Profile, trace: Trace, result: UInt8Array) -> None:
    """A small program runs on the thread that calls it: its ops are known by ``hlo_op``."""
    stats = profile.typed_stats(frozenset(("hlo_op",)))
    if not stats.rows:
        return
    places = trace.places(stats.array("event_id"))
    places = places[places >= 0]
    places = places[trace.within(trace.lines_on(HOST))[places]]
    places = places[result[places] == Activity.HOST]
    communicates = np.zeros(len(trace.name.values) + 1, np.bool_)
    for code in np.unique(trace.name.codes[places]).tolist():
        communicates[code] = device_activity(trace.name.values[code]) == Activity.COMMUNICATION
    result[places] = np.where(
        communicates[trace.name.codes[places]], Activity.COMMUNICATION, Activity.HOST_OP
    )


def _refine_copies(
    profile: Profile, trace: Trace, result: UInt8Array, lines: list[TraceLine]
) -> None:
    """ROCm's copies by kernel do not name a target: what launched them does."""
    values = trace.name.values
    unsaid = np.array([*map(lacks_direction, values), False])
    direction = np.array([*(int(copy_of(name) or 0) for name in values), 0], np.uint8)
    direction[unsaid] = 0
    links = links_of(profile)
    copies = unsaid[trace.name.codes[links.target]] & trace.within(lines)[links.target]
    stated = direction[trace.name.codes[links.cause]]
    known = copies & (stated > 0)
    result[links.target[known]] = stated[known]


def _refine_runs(
    profile: Profile, trace: Trace, result: UInt8Array, lines: list[TraceLine]
) -> None:
    """Executions of ops: their kind, type and label say what the name of the node does not."""
    wanted = frozenset(("kind", "op_type", "label"))
    runs = profile.columns("op_runs", wanted)
    rows = trace.rows(slice(None))
    kind, op_type, label = (runs.names(name).take(rows) for name in ("kind", "op_type", "label"))
    typed = op_type.per_row(lambda text: host_activity(f"x:{text}"), np.uint8)
    plain = np.isin(result, (Activity.HOST, Activity.HOST_OP, Activity.NOTHING))
    on_device = trace.within(lines)
    result[:] = np.where(plain & ~on_device, np.where(typed > 0, typed, Activity.HOST_OP), result)
    launching = [plane.kind == HOST and "cpu" not in plane.name.lower() for plane in trace.planes]
    for line in trace.lines:
        if launching[line.plane]:
            result[line.events] = Activity.LAUNCH
    for line in lines:
        copied = copy_of(trace.planes[line.plane].name.rpartition("<")[2].rstrip(">"))
        if copied is not None:
            result[line.events] = copied
    copied_by = label.per_row(lambda text: copy_of(text) or Activity.NOTHING, np.uint8)
    by_type = op_type.per_row(lambda text: copy_of(text) or Activity.NOTHING, np.uint8)
    copied_by = np.where(copied_by > 0, copied_by, by_type)
    copied_by[_saved_as_copies(profile, rows) & (copied_by == 0)] = Activity.DEVICE_TO_DEVICE
    result[:] = np.where(on_device & (copied_by > 0), copied_by, result)
    result[kind.codes == kind.code_of("sync")] = Activity.WAIT
    result[kind.codes == kind.code_of("rpc")] = Activity.COMMUNICATION


def _saved_as_copies(profile: Profile, rows: Int64Array) -> BoolArray:
    """Which of the executions ``rows`` a tracer saved under ``memcpy`` too: a copy, whatever its
    label is.
    """
    wanted = frozenset(("device", "kind", "name", "start_ps", "duration_ps"))
    runs = profile.columns("op_runs", wanted)
    kind, device = runs.names("kind"), runs.names("device")
    is_copy = kind.codes == kind.code_of("memcpy")
    if not is_copy.any():
        return np.zeros(rows.size, np.bool_)
    hardware = Names.encode([PART.sub("", name) for name in device.values]).codes
    same = np.stack([
        hardware[device.codes].astype(np.int64), runs.names("name").codes.astype(np.int64),
        runs.array("start_ps"), runs.array("duration_ps"),
    ])  # fmt: skip
    _, group = np.unique(same, axis=1, return_inverse=True)
    again = np.isin(group, group[is_copy])
    return np.asarray(again[rows])
