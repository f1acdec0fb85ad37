"""Executions of ops on devices, and which of the framework's ops they were for.

- GPU (XSpace): an event says which instruction of which program it is (``hlo_op``, ``program_id``),
  or which op launched it (``tf_op``); the program, where the profile holds it, says what the
  instruction was made for and what it costs.
- TPU: the events of the line ``XLA Ops``; what each kind is stands with its metadata.
- A kernel of NCCL, where the format records collectives: the collective, with its kernels.
- Anything else on a device: the op that runs on the host around the launch, by
  the profile's links; else what the event itself is called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.tables import Profile
from peakline.tables.event_rules import EventKind
from peakline.tables.joins import positions
from peakline.tables.once import once
from peakline.timing.ops.host import Executions, OpKey, Ops, host_executions, op_numbers_of_runs
from peakline.timing.ops.names import parse_op_name
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.ops.tpu import is_op_line, tpu_ops
from peakline.timing.programs.device import DeviceOp, Programs, gpu_ops
from peakline.trace.activity import activity_of, event_kinds
from peakline.trace.activity_names import Activity, collective_in
from peakline.trace.collective_records import collective_records
from peakline.trace.events import DEVICE, Trace, TraceLine, nesting_of, trace_of
from peakline.trace.links import links_of
from peakline.trace.nesting import nest_lines

_TPU = "/device:TPU:"
_NCCL = re.compile(r"(?i)[nr]ccl")
"""Kernels of NCCL and RCCL: one op, whatever of the host's ops is around the launch."""


@dataclass(frozen=True, eq=False)
class DeviceExecutions:
    """Executions on devices, device after device and line after line.

    ``event`` is the place in the trace, ``op`` that in ``ops``, ``plane`` that of the device in
    `Trace.planes`. ``start`` and ``end`` are by the device's own clock where the profile has it.
    """

    ops: list[DeviceOp]
    event: Int64Array
    op: Int32Array
    plane: Int32Array
    start: Int64Array
    end: Int64Array
    own_ps: Int64Array
    parent: Int32Array
    eager: frozenset[int]


@once
def device_executions(profile: Profile) -> DeviceExecutions:
    """Every execution of an op on a device, found once for the profile.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    lines = op_lines(trace)
    events = [np.arange(line.first, line.last, dtype=np.int64) for line in lines]
    event = np.concatenate([np.zeros(0, np.int64), *events])
    line_of = np.repeat(np.arange(len(lines), dtype=np.int64), [part.size for part in events])
    kinds = event_kinds(profile) if trace.source == "events" else None
    if kinds is not None:
        # Streams of a GPU may repeat what the user marked on the host, and show waits.
        works = kinds[trace.rows(event)] != EventKind.NO_WORK
        event, line_of = event[works], line_of[works]
    start, end = device_times(profile, trace, event)
    order = np.lexsort((start - end, start, line_of))
    if (order[1:] < order[:-1]).any():
        event, line_of, start, end = event[order], line_of[order], start[order], end[order]
    own = end - start
    parent = np.full(event.size, -1, np.int32)
    first = np.searchsorted(line_of, np.arange(len(lines) + 1))
    nested = profile.event_rules.nested_devices
    names = [trace.planes[line.plane].name for line in lines]
    is_nested = [bool(nested and nested.fullmatch(name)) for name in names]
    if any(is_nested) or any(name.startswith(_TPU) for name in names):
        nests = np.array(
            [of or name.startswith(_TPU) for of, name in zip(is_nested, names, strict=True)]
        )
        nest_lines(start, end, first, nests, parent, np.zeros(0, np.uint16), own)
    ops, op, eager = _ops(profile, trace, event)
    plane = np.array([line.plane for line in lines], np.int32)[line_of]
    return DeviceExecutions(ops, event, op, plane, start, end, own, parent, eager)


def op_lines(trace: Trace) -> list[TraceLine]:
    """The lines that show what ran on a device, each thing once."""
    result = []
    for line in trace.lines:
        plane = trace.planes[line.plane]
        if plane.kind != DEVICE or line.derived is not None:
            continue
        if plane.name.startswith(_TPU) and not is_op_line(plane.name, line.name):
            continue
        result.append(line)
    return result


def device_times(
    profile: Profile, trace: Trace, event: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """By the clock of the device, where the profile has it (TPU), else by the host's."""
    start, end = trace.start[event], trace.end[event]
    if trace.source != "events" or not event.size:
        return start, end
    stats = op_stats_of(profile)
    begin, length = stats["device_offset_ps"], stats["device_duration_ps"]
    if begin.row.size and length.row.size:
        rows = trace.rows(event)
        at, has = begin.at(rows)
        at_length, has_length = length.at(rows)
        both = has & has_length
        start = np.where(both, begin.integer[at], start)
        end = np.where(both, start + length.integer[at_length], end)
    return start, end


def _ops(
    profile: Profile, trace: Trace, event: Int64Array
) -> tuple[list[DeviceOp], Int32Array, frozenset[int]]:
    if trace.source == "op_runs":
        numbers = Ops()
        op = op_numbers_of_runs(profile, trace, numbers)[event]
        made = [DeviceOp((0, key.name), key.name, key.op_type) for key in numbers.numbers]
        return made, op, frozenset()
    if not event.size:
        # Reading what events say of ops takes longest of all.
        return [], np.zeros(0, np.int32), frozenset()
    rows, names = trace.rows(event), trace.name.take(event)
    if any(plane.name.startswith(_TPU) for plane in trace.planes):
        ops, op = tpu_ops(profile, rows)
    else:
        result = gpu_ops(profile, rows, names, Programs(profile))
        ops, op = list(result.ops), result.op.copy()
    find = profile.event_rules.ops
    stated = find(profile) if find is not None and (op < 0).any() else None
    if stated is not None:
        here = np.flatnonzero((op < 0) & (stated.op[rows] >= 0))
        used, place = np.unique(stated.op[rows[here]], return_inverse=True)
        op[here] = (place + len(ops)).astype(np.int32)
        for name, op_type in (stated.ops[number] for number in used.tolist()):
            ops.append(DeviceOp((0, f"{op_type}:{name}"), name, op_type))
    silent = np.flatnonzero(op < 0)
    if silent.size:
        _name_silent(profile, trace, event, silent, ops, op)
    flags = op_stats_of(profile)["is_eager"].integers_at(rows) != 0
    return ops, op, frozenset(np.unique(op[flags]).tolist())


def _name_silent(
    profile: Profile,
    trace: Trace,
    event: Int64Array,
    silent: Int64Array,
    ops: list[DeviceOp],
    op: Int32Array,
) -> None:
    """Events that say nothing of an op: that of the host that launched them, else themselves."""
    host = host_executions(profile)
    run, keys = launching_runs(profile)[event[silent]], host.keys
    launcher = np.where(run >= 0, host.op[run], -1) if host.op.size else run
    codes = trace.name.codes[event[silent]].astype(np.int64)
    said, texts = _collectives_at(profile, event[silent], run)
    pairs, place = np.unique(
        np.stack([codes * (len(keys) + 1) + launcher + 1, said]), axis=1, return_inverse=True
    )
    place = place.reshape(-1)
    numbers = []
    for pair, collective in pairs.T.tolist():
        code, number = divmod(pair, len(keys) + 1)
        text = trace.name.values[code]
        numbers.append(len(ops))
        if collective >= 0 and _NCCL.search(text):
            kind = collective_in(texts[collective]) or collective_in(text) or "collective"
            name = f"nccl:{kind.replace('-', '_')}"
            ops.append(DeviceOp((0, f"{name}/{text}"), name, ""))
        elif number:
            key = keys[number - 1]
            ops.append(DeviceOp((0, f"{key.name}/{text}"), key.name, key.op_type))
        else:
            ops.append(DeviceOp((0, text), text, parse_op_name(text).op_type))
    op[silent] = np.array(numbers, np.int32)[place]


def _collectives_at(
    profile: Profile, event: Int64Array, run: Int32Array
) -> tuple[Int64Array, list[str]]:
    """Which collective each of ``event``, launched by ``run`` of the host's executions, belongs to:
    a place in the names that are returned, or -1 where the format records none.

    The name is the kernel's own, or that of the record around its launch; else empty.
    """
    result = np.full(event.size, -1, np.int64)
    rule = profile.event_rules.collectives
    if rule is None or not rule.record:
        return result, []
    known, host = collective_records(profile), host_executions(profile)
    result[activity_of(profile)[event] == Activity.COMMUNICATION] = len(known.name.values)
    around = host.event[run].astype(np.int64) if host.event.size else run.astype(np.int64)
    for at, is_there in ((around, run >= 0), (event, np.ones(event.size, np.bool_))):
        row = positions(known.event, at)
        row[~is_there] = -1
        use = (result >= 0) & (row >= 0)
        codes = known.name.codes[row[use]].astype(np.int64)
        result[use] = np.where(codes >= 0, codes, result[use])
    return result, [*known.name.values, ""]


@once
def launching_runs(profile: Profile) -> Int32Array:
    """For every event which of `host_executions` ran around its launch, -1 for none."""
    trace = trace_of(profile)
    result = np.full(trace.size, -1, np.int32)
    links = links_of(profile)
    if not links.size:
        return result
    host = host_executions(profile)
    run_of = np.full(trace.size, -1, np.int32)
    run_of[host.event] = np.arange(host.event.size, dtype=np.int32)
    around = nesting_of(profile).around(links.cause, run_of >= 0)
    above = np.where(run_of[links.cause] >= 0, links.cause, around)
    result[links.target] = np.where(above >= 0, run_of[above], -1)
    return result


def framework_executions(profile: Profile) -> Executions:
    """The executions on devices by the framework's op, for statistics."""
    result = device_executions(profile)
    numbers: dict[OpKey, int] = {}
    eager: set[int] = set()
    of_op = np.zeros(len(result.ops), np.int32)
    for number, op in enumerate(result.ops):
        parsed = parse_op_name(op.provenance) if op.provenance else op
        key = OpKey(0, parsed.name, parsed.op_type)
        of_op[number] = numbers.setdefault(key, len(numbers))
        if number in result.eager:
            eager.add(int(of_op[number]))
    return Executions(
        list(numbers), result.event, of_op[result.op], result.end - result.start, result.own_ps,
        frozenset(eager),
    )  # fmt: skip
