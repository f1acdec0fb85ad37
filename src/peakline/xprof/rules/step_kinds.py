"""What XProf's step database takes an event for: the kind of time that it explains.

Source of the rules: ``convert/xplane_to_step_events.cc`` of openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt8Array
from peakline.kernels.trace_layout import MARKER, NOTHING, SKIP
from peakline.tables import Columns, Profile
from peakline.timing.input_pipeline import is_enqueue
from peakline.timing.ops.names import COPY, TENSORFLOW, parse_op_name
from peakline.trace.activity import activity_of, named_activities
from peakline.trace.activity_names import Activity
from peakline.trace.events import Trace, TraceLine, nesting_of


class SpanKind(IntEnum):
    """Kinds of spans, by rank: where several cover an instant, the highest has it.

    A tenth of upstream's EventType (steps_db.proto).
    """

    UNKNOWN = 0
    HOST_COMPUTE = 1
    HOST_COMPILE = 6
    HOST_TO_HOST = 7
    HOST_TO_DEVICE = 8
    HOST_PREPARE = 9
    DEVICE_COLLECTIVES = 10
    HOST_WAIT_INPUT = 11
    DEVICE_TO_DEVICE = 12
    DEVICE_TO_HOST = 13
    DEVICE_COMPUTE_32 = 14
    DEVICE_COMPUTE_16 = 15

    # That of an Enum is made of its name, by Python: it is needed a dozen times a step.
    __hash__ = int.__hash__


KINDS = max(SpanKind) + 1
"""How many columns a table by kind has."""

SHAPES = "shape"
"""The stat that has the shapes and types of the tensors that a kernel works on."""
_NOT_COMPUTE = ("EagerExecute", "EagerLocalExecute", "EagerKernelExecute", "FunctionRun")
_COPIES = {
    "MemcpyHToD": SpanKind.HOST_TO_DEVICE,
    "MemcpyDToH": SpanKind.DEVICE_TO_HOST,
    "MemcpyDToD": SpanKind.DEVICE_TO_DEVICE,
    "MemcpyHToH": SpanKind.HOST_TO_HOST,
}
_OF_ACTIVITY: dict[Activity, int] = {
    Activity.COMPUTE: SpanKind.DEVICE_COMPUTE_32,
    Activity.COMMUNICATION: SpanKind.DEVICE_COLLECTIVES,
    Activity.DEVICE_TO_DEVICE: SpanKind.DEVICE_TO_DEVICE,
    Activity.DEVICE_TO_HOST: SpanKind.DEVICE_TO_HOST,
    Activity.HOST_TO_DEVICE: SpanKind.HOST_TO_DEVICE,
    Activity.INPUT_WAIT: SpanKind.HOST_WAIT_INPUT,
    Activity.COMPILE: SpanKind.HOST_COMPILE,
    Activity.LAUNCH: SpanKind.HOST_PREPARE,
    Activity.HOST_OP: SpanKind.HOST_COMPUTE,
    Activity.HOST: SpanKind.HOST_COMPUTE,
}
_STAGE, _PRODUCER, _CONSUMER = "_ipl_stage_name", ("_pt", "_p"), ("_ct", "_c")


def host_kinds(trace: Trace) -> AnyArray:
    """Per name of the trace, and for no name, what an event of the host is by its name alone: a
    `SpanKind`, `MARKER` of a step, or `SKIP`.
    """
    return np.array([*(_host_kind(name) for name in trace.name.values), SKIP], np.uint8)


def _host_kind(name: str) -> int:
    if name.startswith(("train", "test", "TraceContext")) and "/" not in name:
        return MARKER
    if name.startswith(_NOT_COMPUTE):
        return SKIP
    op = parse_op_name(name)
    if op.category == TENSORFLOW and is_enqueue(op.op_type):
        return SpanKind.HOST_TO_DEVICE
    copied = _COPIES.get(op.op_type) if op.category == COPY else None
    if copied in {SpanKind.HOST_TO_DEVICE, SpanKind.HOST_TO_HOST}:
        return copied
    if name[:15].lower() == "iteratorgetnext":
        return SpanKind.HOST_WAIT_INPUT
    return SpanKind.HOST_COMPUTE


def device_kinds(trace: Trace, events: Int64Array, shapes: Columns) -> UInt8Array:
    """The kind of each of ``events`` (places, ascending) of a GPU.

    ``shapes`` are `Profile.typed_stats` of `SHAPES`: what a kernel worked on says more
    of its precision than its name.
    """
    # There may be very many devices: only what this one has.
    used, name = np.unique(trace.name.codes[events], return_inverse=True)
    by_name = [_device_kind(trace.name.values[code] if code >= 0 else "") for code in used.tolist()]
    result = np.array(by_name, np.uint8)[name]
    if not shapes.rows or not events.size:
        return result
    text = shapes.names("text")
    place = trace.places(shapes.array("event_id"))
    at = np.minimum(np.searchsorted(events, place), events.size - 1)
    own = np.flatnonzero((text.codes >= 0) & (events[at] == place))
    used, code = np.unique(text.codes[own], return_inverse=True)
    says = np.array([bool(text.values[each]) for each in used.tolist()], np.bool_)[code]
    at, code = at[own[says]], code[says]
    halved = np.array(["half" in text.values[each] for each in used.tolist()], np.bool_)[code]
    kernels = result[at] >= SpanKind.DEVICE_COMPUTE_32
    result[at[kernels]] = np.where(halved, SpanKind.DEVICE_COMPUTE_16, SpanKind.DEVICE_COMPUTE_32)[
        kernels
    ]
    return result


def _device_kind(name: str) -> int:
    op = parse_op_name(name)
    copied = _COPIES.get(op.op_type) if op.category == COPY else None
    if copied is not None and copied != SpanKind.HOST_TO_HOST:
        return copied
    if name[:4].lower() == "nccl":
        return SpanKind.DEVICE_COLLECTIVES
    if "half" in name or "fp16" in name:
        return SpanKind.DEVICE_COMPUTE_16
    return SpanKind.DEVICE_COMPUTE_32


def activity_kinds(
    profile: Profile, events: Int64Array | slice, *, with_device: bool
) -> UInt8Array:
    """The kind of each of ``events`` (places) by what it does (`peakline.trace.activity`).

    What XProf knows by a few names only: waits for a DataLoader, launches of every runtime,
    copies by the names of every tool. A kernel counts as one of 32 bits. Work of an input pipeline
    in the background and waits for a device are `NOTHING` that a step's time goes to.
    """
    result: UInt8Array = _by_activity(with_device=with_device)[activity_of(profile)[events]]
    return result


def named_kinds(profile: Profile) -> Callable[[TraceLine], UInt8Array] | None:
    """What gives `activity_kinds` per name of a line of a host without a device, so that what ten
    million events do need not be written down; None where more than the names counts.
    """
    of_line = named_activities(profile)
    if of_line is None:
        return None
    table = _by_activity(with_device=False)
    return lambda line: table[of_line(line)]


def _by_activity(*, with_device: bool) -> UInt8Array:
    kinds = dict.fromkeys(Activity, NOTHING) | _OF_ACTIVITY
    if not with_device:
        kinds[Activity.LAUNCH] = SpanKind.HOST_COMPUTE
    return np.array([kinds[activity] for activity in sorted(Activity)], np.uint8)


def special_kinds(
    profile: Profile, trace: Trace, lines: list[TraceLine], kind_of: UInt8Array
) -> UInt8Array:
    """Per event the kind that its stats give it instead of its name, else `SKIP`: a stage of an
    input pipeline that nobody else of it asks is waited for. Empty where there are no stages.
    """
    stats = profile.typed_stats(frozenset((_STAGE,)))
    if not stats.rows:
        return np.zeros(0, np.uint8)
    special = np.full(trace.size, SKIP, np.uint8)
    text, place = stats.names("text"), trace.places(stats.array("event_id"))
    here = np.zeros(place.size, np.bool_)
    for line in lines:
        here |= (place >= line.first) & (place < line.last)
    here &= kind_of[trace.name.codes[place]] == SpanKind.HOST_COMPUTE
    named = np.array([bool(value) for value in text.values] or [False])
    all_stages = place[(text.codes >= 0) & named[text.codes]]
    stages = place[here & (text.codes >= 0) & named[text.codes]]
    special[stages[_at_root(profile, trace, stages, all_stages)]] = SpanKind.HOST_WAIT_INPUT
    return special


def _at_root(profile: Profile, trace: Trace, stages: AnyArray, everywhere: AnyArray) -> AnyArray:
    """Which stages nobody else of the pipeline asks: they lie in no stage, nor in work that an
    event of another thread handed on.
    """
    if not stages.size:
        return np.zeros(0, np.bool_)
    handed = _handed_on(profile, trace)
    below = np.zeros(trace.size, np.bool_)
    below[everywhere] = below[handed] = True
    inside = np.isin(stages, handed) | (nesting_of(profile).around(stages, below) >= 0)
    return ~inside


def _handed_on(profile: Profile, trace: Trace) -> AnyArray:
    """Events that consume what some event of the trace says it produces."""
    stats = profile.typed_stats({*_PRODUCER, *_CONSUMER})
    producer, consumer = (_contexts(trace, stats, names) for names in (_PRODUCER, _CONSUMER))
    made = set(zip(producer[1].tolist(), producer[2].tolist(), strict=True))
    took = [pair in made for pair in zip(consumer[1].tolist(), consumer[2].tolist(), strict=True)]
    result: AnyArray = consumer[0][np.array(took, np.bool_)]
    return result


def _contexts(
    trace: Trace, stats: Columns, names: tuple[str, str]
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The events that have both stats, and the values."""
    name = stats.names("name")
    of_type, of_id = (name.codes == name.code_of(wanted) for wanted in names)
    events, rows = np.unique(stats.array("event_id")[of_type], return_index=True)
    other, other_rows = np.unique(stats.array("event_id")[of_id], return_index=True)
    both, one, two = np.intersect1d(events, other, assume_unique=True, return_indices=True)
    value = stats.array("integer")
    return (trace.places(both), value[of_type][rows][one], value[of_id][other_rows][two])
