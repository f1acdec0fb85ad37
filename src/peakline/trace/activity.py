"""What every event of a trace does: one small number per event, decided once per distinct name."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from peakline.arrays import BoolArray, UInt8Array
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.joins import positions
from peakline.tables.once import once
from peakline.trace.activity_names import (
    Activity,
    category_activity,
    copy_of,
    device_activity,
    host_activity,
    lacks_direction,
)
from peakline.trace.collectives import recorded_collectives
from peakline.trace.device_lines import devices_of
from peakline.trace.events import HOST, Trace, TraceLine, trace_of

_RUNTIME = (
    "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "xpu_runtime",
    "xpu_driver", "mtia_runtime", "privateuse1_runtime", "privateuse1_driver",
)  # fmt: skip
NO_WORK = (
    "gpu_user_annotation", "cuda_sync", "overhead", "cuda_profiler_range", "ac2g", "trace",
    "fwdbwd", "cpu_instant_event", "async_cpu_op", "cuda_event", "xpu_sync",
    "mtia_insight",
)  # fmt: skip
"""Categories of PyTorch's traces whose events are no work of their line, in lower case."""
_MTIA, _WAITS_ON = "mtia_ccp_events", "wait_on_stream"
"""The category of all that an MTIA's queues do, and the argument of what waits for another."""
_KERNEL = frozenset(("kernel", "concurrent_kernel"))
_GET_NEXT = "tf_data_iterator_get_next"
"""The threads on which ``IteratorGetNext`` of a tf.function waits for a batch, so that none of the
executor does (``IteratorGetNextOp`` in tensorflow/core/kernels/data/iterator_ops.cc); what other
threads of tf.data do goes on whether it is waited for or not."""
_THUNKS = "ThunkExecutor::Execute"
"""What XLA's runtime for CPUs traces wherever it runs a program."""
_CORRELATION = frozenset(("correlation_id", "correlation"))


@once
def activity_of(profile: Profile) -> UInt8Array:
    """An `Activity` for every event of ``trace_of(profile)``.

    Decided by where the event lies (a device's streams or ops, a host's thread) and by its name,
    its category (PyTorch), its ``hlo_category`` (TPU), or the kind and label of an execution
    (StepStats). Made once per profile. Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    found = np.zeros(trace.size, np.uint8)
    if not trace.size:
        return found
    on_host = _Table(trace.name, host_activity)
    on_device = _Table(trace.name, device_activity)
    devices = devices_of(profile)
    lines = [trace.lines[place] for device in devices for place, _ in device.lines]
    for line in lines:
        found[line.events] = on_device.of(line.events)[trace.name.codes[line.events]]
    for line in trace.lines_on(HOST):
        found[line.events] = _of_line(line, on_host)[trace.name.codes[line.events]]
    if trace.source == "op_runs":
        _refine_runs(profile, trace, found, lines)
        return found
    if profile.has_categories:
        _refine_categories(profile, trace, found, lines)
    of_tpus = [trace.lines[place] for one in devices if one.is_tpu for place, _ in one.lines]
    if of_tpus:
        _refine_tpu(profile, trace, found, of_tpus)
    if trace.name.code_of(_THUNKS) >= 0:
        _refine_thunks(profile, trace, found)
    if any(lacks_direction(name) for name in trace.name.values):
        _refine_copies(profile, trace, found, lines)
    return found


def no_work(profile: Profile) -> BoolArray:
    """Which rows of ``events`` are no work of their line, by PyTorch's profiler: marks, waits."""
    category = profile.columns("events", frozenset(("category",))).names("category")
    found: BoolArray = category.per_row(lambda text: text.lower() in NO_WORK, np.bool_)
    if any(text.lower() == _MTIA for text in category.values):
        waits = profile.typed_stats(frozenset((_WAITS_ON,))).array("event_id")
        found[waits[category.per_row(lambda text: text.lower() == _MTIA, np.bool_)[waits]]] = True
    return found


def named_activities(profile: Profile) -> Callable[[TraceLine], UInt8Array] | None:
    """What gives of a line of a host's threads an `Activity` per code of a name (the last for no
    name), as `activity_of` decides; None where more than the names counts.
    """
    trace = trace_of(profile)
    if not profile.has_runtime_planes or trace.name.code_of(_THUNKS) >= 0:
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


def _refine_categories(
    profile: Profile, trace: Trace, found: UInt8Array, lines: list[TraceLine]
) -> None:
    """PyTorch's categories say which events are calls of the driver, and which are no work."""
    category = profile.columns("events", frozenset(("category",))).names("category")
    if not category.values:
        return
    category = category if trace.row is None else category.take(trace.row)

    def is_one_of(words: Collection[str]) -> BoolArray:
        return category.per_row(lambda text: text.lower() in words, np.bool_)

    silent = no_work(profile)
    found[silent if trace.row is None else silent[trace.row]] = Activity.NOTHING
    found[is_one_of(_RUNTIME) & (found == Activity.HOST_OP)] = Activity.HOST
    # What a program calls a stretch of its own code says nothing of what it does there.
    is_annotation = is_one_of(("user_annotation",))
    found[is_annotation & (found != Activity.INPUT_WAIT)] = Activity.NOTHING
    found[is_one_of(("cpu_op",)) & (found == Activity.HOST)] = Activity.HOST_OP
    # Whatever a kernel is called, even as what is no work elsewhere, it is one.
    unnamed = is_one_of(_KERNEL) & (found == Activity.NOTHING) & trace.within(lines)
    found[unnamed] = Activity.COMPUTE
    recorded = recorded_collectives(profile)
    found[recorded[found[recorded] == Activity.COMPUTE]] = Activity.COMMUNICATION


def _refine_tpu(profile: Profile, trace: Trace, found: UInt8Array, lines: list[TraceLine]) -> None:
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
        found[line.events] = np.where(stated > 0, stated, found[line.events])


def _refine_thunks(profile: Profile, trace: Trace, found: UInt8Array) -> None:
    """A small program runs on the thread that calls it: its ops are known by ``hlo_op``."""
    stats = profile.typed_stats(frozenset(("hlo_op",)))
    if not stats.rows:
        return
    places = trace.places(stats.array("event_id"))
    places = places[places >= 0]
    places = places[trace.within(trace.lines_on(HOST))[places]]
    places = places[found[places] == Activity.HOST]
    communicates = np.zeros(len(trace.name.values) + 1, np.bool_)
    for code in np.unique(trace.name.codes[places]).tolist():
        communicates[code] = device_activity(trace.name.values[code]) == Activity.COMMUNICATION
    found[places] = np.where(
        communicates[trace.name.codes[places]], Activity.COMMUNICATION, Activity.HOST_OP
    )


def _refine_copies(
    profile: Profile, trace: Trace, found: UInt8Array, lines: list[TraceLine]
) -> None:
    """ROCm's copies by kernel do not name a target: what launched them (by correlation) does."""
    stats = profile.typed_stats(_CORRELATION)
    number, event = stats.array("integer"), trace.places(stats.array("event_id"))
    known = stats.is_valid("integer") & (event >= 0)
    number, event = number[known], event[known]
    values = trace.name.values
    unsaid = np.array([*map(lacks_direction, values), False])
    direction = np.array([*(int(copy_of(name) or 0) for name in values), 0], np.uint8)
    direction[unsaid] = 0
    codes = trace.name.codes[event]
    on_device = trace.within(lines)
    copies = np.flatnonzero(unsaid[codes] & on_device[event])
    calls = np.flatnonzero((direction[codes] > 0) & ~on_device[event])
    if not copies.size or not calls.size:
        return
    calls = calls[np.argsort(number[calls], kind="stable")]
    at = positions(number[calls], number[copies])
    found[event[copies[at >= 0]]] = direction[codes[calls[at[at >= 0]]]]


def _refine_runs(profile: Profile, trace: Trace, found: UInt8Array, lines: list[TraceLine]) -> None:
    """Executions of ops: their kind, type and label say what the name of the node does not."""
    wanted = frozenset(("kind", "op_type", "label"))
    runs = profile.columns("op_runs", wanted)
    rows = trace.rows(slice(None))
    kind, op_type, label = (runs.names(name).take(rows) for name in ("kind", "op_type", "label"))
    typed = op_type.per_row(lambda text: host_activity(f"x:{text}"), np.uint8)
    plain = np.isin(found, (Activity.HOST, Activity.HOST_OP, Activity.NOTHING))
    on_device = trace.within(lines)
    found[:] = np.where(plain & ~on_device, np.where(typed > 0, typed, Activity.HOST_OP), found)
    device_plane = np.array([plane.kind != HOST for plane in trace.planes], np.bool_)
    for line in trace.lines:
        if device_plane[line.plane] and not on_device[line.first : line.last].all():
            found[line.events] = Activity.LAUNCH
    for line in lines:
        copied = copy_of(trace.planes[line.plane].name.rpartition("<")[2].rstrip(">"))
        if copied is not None:
            found[line.events] = copied
    copied_by = label.per_row(lambda text: copy_of(text) or Activity.NOTHING, np.uint8)
    found[:] = np.where(on_device & (copied_by > 0), copied_by, found)
    found[kind.codes == kind.code_of("sync")] = Activity.WAIT
    found[kind.codes == kind.code_of("rpc")] = Activity.COMMUNICATION
