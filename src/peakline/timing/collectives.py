"""Every collective that a process took part in: the table ``collectives``.

docs/collectives.md says how they are recognised, source by source, and what each column means.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.event_rules import CollectiveStats, numbers_of
from peakline.tables.joins import positions
from peakline.tables.once import once
from peakline.timing.ops.host_devices import RENDEZVOUS, device_name
from peakline.timing.ops.stat_columns import OpStatColumns, op_stats_of
from peakline.timing.ops.tpu import type_number, type_stats_of, types_of
from peakline.timing.programs.collective_instructions import (
    CollectiveInstruction,
    instruction_in,
    instruction_of,
    named,
)
from peakline.timing.programs.device import Programs
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import (
    COLLECTIVE,
    Activity,
    kind_of_collective,
    stated_collective,
)
from peakline.trace.collective_records import bytes_of_type, collective_records
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.events import HOST, Trace, nesting_of, read_with_steps, trace_of
from peakline.trace.links import links_of
from peakline.trace.op_inputs import DIMS, element_type, elements_of, inputs_of, texts_of
from peakline.trace.steps import step_places_of, steps_of
from peakline.trace.windows import windows_of

SYNCHRONISING = frozenset(("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier"))
"""The kinds in which nobody is done before all have arrived: of these alone an early member
waits."""
_OF_OUTPUT = frozenset(("all-gather", "gather"))
_OF_INPUT = frozenset(("reduce-scatter", "scatter"))
_TWICE = frozenset(("all-reduce",))
_ONCE = frozenset(("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter"))
_WHOLE = frozenset(("broadcast", "reduce", "send", "recv", "send-recv", "collective-permute"))
_PENDING = 64
"""So many calls that no event of a backend fits are looked through."""


def bus_bandwidth(
    kind: str, size_bytes: AnyArray, group_size: AnyArray, transfer_ps: AnyArray
) -> Float64Array:
    """Bytes per second that each link carried at least, as nccl-tests has it (``busbw``).

    ``size_bytes`` are as in `CollectiveRows`, ``group_size`` the number of members, ``transfer_ps``
    how long the transfer took; arrays of one shape, or numbers. NaN where one of them is not known
    (not above 0), and for kinds without a rule (a barrier moves nothing).
    Source: ``PERFORMANCE.md`` of NVIDIA/nccl-tests.

    >>> bus_bandwidth("all-reduce", 4e9, 4, 10**12).item()
    6000000000.0
    """
    size, members, time = (
        np.asarray(one, np.float64) for one in (size_bytes, group_size, transfer_ps)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (members - 1) / members
        factor = np.full(np.shape(members), np.nan)
        if kind in _TWICE:
            factor = 2 * others
        elif kind in _ONCE:
            factor = others
        elif kind in _WHOLE:
            factor = np.ones(np.shape(members))
        is_known = (size > 0) & (time > 0) & ((members > 0) | (kind in _WHOLE))
        return np.where(is_known, size / (time / 1e12) * factor, np.nan)


@dataclass(frozen=True, eq=False)
class CollectiveRows:
    """A row for each collective and participant in this process, by device, then in order of
    ``arrive``; a number that is not recorded is -1, a text null. Times in ps.

    ``device`` is the place in ``devices``, -1 for the host. ``kind`` is one of all-reduce,
    all-gather, reduce-scatter, all-to-all, broadcast, reduce, gather, scatter, barrier, send, recv,
    send-recv, collective-permute, and ``collective`` where it is not recorded which. ``group`` is
    the group's name, ``group_ranks`` a JSON list of its members' numbers in the job, ``peer`` the
    other one of a message, ``sequence`` the number of the collective in the group, ``key`` a text
    that is the same on all members and of no other collective. ``size_bytes`` counts as nccl-tests
    does: the whole buffer. ``launch`` is when the host enqueued it, ``arrive`` when the device or
    the backend's thread began it, ``end`` when it was done there. ``thread_line`` is a place in the
    lines of the trace, ``event`` one in the trace.
    """

    devices: tuple[str, ...]
    device: Int32Array
    kind: Names
    group: Names
    group_ranks: Names
    group_size: Int32Array
    peer: Int32Array
    sequence: Int64Array
    key: Names
    size_bytes: Int64Array
    data_type: Names
    launch: Int64Array
    arrive: Int64Array
    end: Int64Array
    step_id: Int64Array
    name: Names
    thread_line: Int32Array
    event: Int64Array

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.event.size


@once
def collective_rows(profile: Profile) -> CollectiveRows:
    """The collectives that the profile holds, made once; no rows where none are recorded.

    Raises InputError when the profile cannot be read.
    """
    read_with_steps(profile)
    trace = trace_of(profile)
    devices = [one.name for one in devices_of(profile)]
    parts = [
        _of_devices(profile, trace),
        _of_backends(profile, trace),
        _of_rendezvous(profile, trace, devices),
    ]
    taken = np.concatenate([part.event for part in parts])
    parts.append(_of_host_ops(profile, trace, taken, devices))
    return _joined(profile, trace, tuple(devices), parts)


def columns_of(profile: Profile) -> Columns:
    """The table ``collectives``."""
    rows = collective_rows(profile)
    number, late, wait, transfer, is_paired = _paired(rows)
    waits = is_paired & _is_one_of(rows.kind, SYNCHRONISING)
    numbers: dict[str, Int64Array] = {
        "group_size": rows.group_size.astype(np.int64),
        "peer": rows.peer.astype(np.int64),
        "sequence": rows.sequence,
        "size_bytes": rows.size_bytes,
        "launch_ps": rows.launch,
        "step_id": rows.step_id,
        "event_id": _trace_rows(profile, rows.event),
    }
    valid: dict[str, BoolArray] = {name: column >= 0 for name, column in numbers.items()}
    return Columns(
        {
            **numbers,
            "collective_id": number,
            "device": Names(rows.device, [*rows.devices]),
            "kind": rows.kind,
            "group_name": rows.group,
            "group_ranks": rows.group_ranks,
            "data_type": rows.data_type,
            "arrive_ps": rows.arrive,
            "end_ps": rows.end,
            "late_ps": late,
            "wait_ps": wait,
            "transfer_ps": transfer,
        },
        valid | {"late_ps": is_paired, "wait_ps": waits, "transfer_ps": waits},
    )


def _trace_rows(profile: Profile, event: Int64Array) -> Int64Array:
    """The rows of ``events`` that are ``event``; -1 where the trace is of executions of ops."""
    trace = trace_of(profile)
    return trace.rows(event) if trace.source == "events" else np.full(event.size, -1, np.int64)


def _paired(
    rows: CollectiveRows,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, BoolArray]:
    """Of each row the number of its collective, the same on all devices that took part, and where
    there are several by how much it came after the median of the others, how long it waited for
    the last to arrive and how long the rest took.
    """
    number = np.arange(rows.rows, dtype=np.int64)
    late, wait, transfer = (np.zeros(rows.rows, np.int64) for _ in range(3))
    is_paired = np.zeros(rows.rows, np.bool_)
    members: dict[object, list[int]] = {}
    columns = rows.kind, rows.key, rows.group, rows.group_ranks
    texts = zip(*(column.to_list() for column in columns), rows.sequence.tolist(), strict=True)
    for row, (kind, key, group, ranks, sequence) in enumerate(texts):
        if key is not None:
            members.setdefault((kind, key), []).append(row)
        elif group is not None and sequence >= 0:
            members.setdefault((kind, group, ranks, sequence), []).append(row)
    for own in members.values():
        # Two replicas on one host differ in the names of their ops.
        who = np.stack([rows.device[own], rows.name.codes[own]])
        if len(own) < 2 or np.unique(who, axis=1).shape[1] < len(own):
            continue
        arrive, end = rows.arrive[own], rows.end[own]
        last = arrive.max()
        number[own], is_paired[own] = own[0], True
        wait[own] = last - arrive
        transfer[own] = np.maximum(end - last, 0)
        for place, row in enumerate(own):
            late[row] = arrive[place] - int(np.median(np.delete(arrive, place)))
    return number, late, wait, transfer, is_paired


class _Part:
    """Some rows before they are joined; at first only what ``event`` says is known of them."""

    def __init__(self, trace: Trace, event: Int64Array) -> None:
        self.event = event
        self.arrive, self.end = trace.start[event], trace.end[event]
        self.kind = Names.constant(COLLECTIVE, event.size)
        self.group = self.group_ranks = self.key = self.data_type = Names.constant(None, event.size)
        self.device, self.group_size, self.peer, self.sequence, self.size_bytes, self.launch = (
            np.full(event.size, -1, np.int64) for _ in range(6)
        )

    def keep(self, rows: BoolArray) -> None:
        """Leave out all rows but these."""
        for name, column in vars(self).items():
            setattr(self, name, column.take(rows) if isinstance(column, Names) else column[rows])


def _joined(
    profile: Profile, trace: Trace, devices: tuple[str, ...], parts: list[_Part]
) -> CollectiveRows:
    def numbers(columns: Iterable[Int64Array], most: int = 2**63 - 1) -> Int64Array:
        column = np.concatenate([np.zeros(0, np.int64), *columns])
        return np.where((column < 0) | (column > most), -1, column)

    def texts(columns: Iterable[Names]) -> Names:
        code_of: dict[str, int] = {}
        codes = [np.zeros(0, np.int32)]
        for column in columns:
            of = [code_of.setdefault(text, len(code_of)) for text in column.values]
            codes.append(np.array([*of, -1], np.int32)[column.codes])
        return Names(np.concatenate(codes), list(code_of))

    event = np.concatenate([part.event for part in parts])
    arrive = np.concatenate([part.arrive for part in parts])
    end = np.concatenate([part.end for part in parts])
    device = np.concatenate([part.device for part in parts])
    order = np.lexsort((event, arrive, device))
    event = event[order]
    device, arrive, end = device[order], arrive[order], end[order]
    return CollectiveRows(
        devices=devices,
        device=device.astype(np.int32),
        kind=texts(part.kind for part in parts).take(order),
        group=texts(part.group for part in parts).take(order),
        group_ranks=texts(part.group_ranks for part in parts).take(order),
        group_size=numbers((part.group_size for part in parts), _MOST)[order].astype(np.int32),
        peer=numbers((part.peer for part in parts), _MOST)[order].astype(np.int32),
        sequence=numbers(part.sequence for part in parts)[order],
        key=texts(part.key for part in parts).take(order),
        size_bytes=numbers(part.size_bytes for part in parts)[order],
        data_type=texts(part.data_type for part in parts).take(order),
        launch=numbers(part.launch for part in parts)[order],
        arrive=arrive,
        end=end,
        step_id=_steps(profile, event, device, arrive),
        name=trace.name.take(event),
        thread_line=trace.lines_of(event).astype(np.int32),
        event=event,
    )


def _steps(
    profile: Profile, event: Int64Array, device: Int64Array, arrive: Int64Array
) -> Int64Array:
    """The id of the step of each event: its own where the file says it, else that in whose window
    on the device it began; -1 for none.
    """
    if not event.size:
        return np.zeros(0, np.int64)
    ids = np.append(steps_of(profile).step_id, -1)
    place = step_places_of(profile)[event].astype(np.int64)
    of_device = {one.plane_id: number for number, one in enumerate(devices_of(profile))}
    for number, windows in enumerate(windows_of(profile)):
        own = place < 0
        if windows.device is not None:
            mine = device == of_device[windows.device.plane_id]
            # What the host does itself is in a step of whichever device.
            own &= (mine | (device < 0)) if number == 0 else mine
        at = np.searchsorted(windows.begin, arrive, side="right") - 1
        own &= (at >= 0) & (arrive < np.append(windows.end, 0)[at])
        place[own] = windows.step[at[own]]
    return ids[place]


_MOST, _MOST_BYTES = 2**31 - 1, 2**62
"""No file says more of anything that is one."""


def _of_devices(profile: Profile, trace: Trace) -> _Part:
    """What devices ran, by what is recorded of it or of the call that launched it."""
    device_of = np.full(len(trace.lines) + 1, -1, np.int64)
    communicates = np.zeros(trace.size, np.bool_)
    for number, one in enumerate(devices_of(profile)):
        for place, _ in one.lines:
            device_of[place] = number
            events = trace.lines[place].events
            communicates[events] = activity_of(profile)[events] == Activity.COMMUNICATION
    event = np.flatnonzero(communicates)
    cause, record, call = _launched_by(profile, trace, event)
    records = collective_records(profile)
    rows = positions(records.event, event), positions(records.event, record)

    def texts(column: Names) -> Names:
        return _first([_at(column, row) for row in rows])

    def numbers(column: Int64Array) -> Int64Array:
        own, around = (np.append(column, -1)[row] for row in rows)
        return np.where(own >= 0, own, around)

    stated = [_changed(_at(records.name, row), stated_collective) for row in rows]
    called = _changed(_at(trace.name, call), stated_collective)
    of_kernel = _changed(trace.name.take(event), kind_of_collective)
    part = _Part(trace, event)
    part.device = device_of[trace.lines_of(event)]
    part.kind = _first([*stated, called, of_kernel, part.kind])
    part.group, part.group_ranks = texts(records.group), texts(records.ranks)
    part.group_size, part.sequence = numbers(records.size), numbers(records.sequence)
    part.key = _changed(texts(records.identity), lambda text: f"comms_id {text}")
    part.data_type = texts(records.data_type)
    other = {"send": numbers(records.target), "recv": numbers(records.source)}
    for word, peer in other.items():
        part.peer = np.where(_is_one_of(part.kind, {word}), peer, part.peer)
    given, result = numbers(records.input_bytes), numbers(records.output_bytes)
    is_joined = _is_one_of(part.kind, _OF_OUTPUT | _OF_INPUT)
    part.size_bytes = np.where(is_joined, np.maximum(given, result), given)
    is_open = (part.size_bytes < 0) & ((record >= 0) | (call >= 0))
    _add_sizes(profile, part, call, _innermost_described(profile, cause, is_open))
    first = np.where(call >= 0, call, np.where(record >= 0, record, cause))
    part.launch = np.append(trace.start, -1)[first]
    _add_instructions(profile, trace, part)
    return part


def _add_instructions(profile: Profile, trace: Trace, part: _Part) -> None:
    """What the compiled programs say of the rows that are instructions of them; the start and the
    end of an asynchronous one are one row.
    """
    made, program = _instructions(profile, trace, part.event)
    if not any(made):
        return
    beside = _beside(profile, trace, part.event)
    keep = np.ones(part.event.size, np.bool_)
    started: dict[tuple[int, int, str], int] = {}
    waiting: dict[tuple[int, str, int], int] = {}
    for row in np.lexsort((beside, part.arrive, part.device)).tolist():
        one, device = made[row], int(part.device[row])
        if one is None:
            continue
        at = device, one.name, int(part.arrive[row])
        if beside[row] and at in waiting:
            # The line beside the ops repeats it, and has its end.
            part.end[waiting[at]] = max(part.end[waiting[at]], part.end[row])
            keep[row] = False
        elif one.end == "done":
            keep[row] = False
            start = started.pop((device, program[row], one.starts), -1)
            if start >= 0:
                part.end[start] = max(part.end[start], part.end[row])
        elif one.end == "start":
            started[device, program[row], one.name] = waiting[at] = row
    members = _members(profile)
    # Which plane is which device is not recorded: only of one alone it is known.
    member = (
        next(iter(members.values())) if len(members) == 1 == np.unique(part.device).size else -1
    )
    left = [one if keep[row] else None for row, one in enumerate(made)]
    _note_instructions(part, left, [*map(str, program)], [member] * part.event.size)
    part.keep(keep)


def _members(profile: Profile) -> dict[int, int]:
    """By the id of a device its number among those that run the programs, as the calls that run
    them say it (``CommonPjRtLoadedExecutable::Execute``): replica or partition, if only one counts.
    """
    wanted = "global_device_id", "replica", "partition"
    stats = OpStatColumns(profile.typed_stats(frozenset(wanted)))
    rows = stats["global_device_id"].row
    device, replica, partition = (stats[name].integers_at(rows) for name in wanted)
    if (replica > 0).any() and (partition > 0).any():
        return {}
    pairs = set(zip(device.tolist(), (replica + partition).tolist(), strict=True))
    result = dict(pairs)
    return result if len(result) == len(pairs) else {}


def _note_instructions(
    part: _Part, made: list[CollectiveInstruction | None], run: list[str], member: list[int]
) -> None:
    """Fill in what instructions say. ``run`` is the program or its run, of which executions of each
    instruction are counted on each device, ``member`` the device's number among those that take
    part (-1: not known).
    """
    kind, data_type = part.kind.to_list(), part.data_type.to_list()
    ranks, key = part.group_ranks.to_list(), part.key.to_list()
    times: Counter[tuple[int, str, str]] = Counter()
    # Executions of one share its group, which may be of thousands.
    written: dict[tuple[int, int], str | None] = {}
    for row in np.lexsort((part.arrive, part.device)).tolist():
        one = made[row]
        if one is None:
            continue
        group, of_device = one.group_with(member[row]), (int(part.device[row]), run[row], one.name)
        if (id(one), member[row]) not in written:
            written[id(one), member[row]] = json.dumps(group) if group else None
        ranks[row] = written[id(one), member[row]]
        # Else it would meet those of the other groups.
        if one.is_whole or group:
            text = f"{run[row]}|{one.name}|{times[of_device]}"
            key[row] = text if one.is_whole else f"{text}|{ranks[row]}"
        times[of_device] += 1
        kind[row] = one.kind or kind[row]
        data_type[row] = one.data_type
        part.size_bytes[row] = one.size_bytes
        part.group_size[row] = len(group) or one.group_size
    part.kind, part.data_type = Names.encode(kind), Names.encode(data_type)
    part.group_ranks, part.key = Names.encode(ranks), Names.encode(key)


def _instructions(
    profile: Profile, trace: Trace, event: Int64Array
) -> tuple[list[CollectiveInstruction | None], list[int]]:
    """The instruction that each event ran, None for one that is none, and its program's id: by the
    text that a TPU's events are called, or by what the event says of itself.
    """
    rows = trace.rows(event)
    made: list[CollectiveInstruction | None] = [None] * event.size
    program = [0] * event.size
    if not event.size or trace.source != "events":
        return made, program
    names, stats = trace.name.take(event), op_stats_of(profile)
    op, of_event = stats["hlo_op"].texts_at(rows), stats["program_id"].integers_at(rows)
    types = types_of(profile, rows) if "event_types" in profile.tables else None
    programs: Programs | None = None
    for row in range(event.size):
        text = names[row] or ""
        program[row] = int(of_event[row]) % 2**64
        if " = " in text:
            made[row] = instruction_in(text)
            if types is not None and types[row] >= 0:
                own = type_stats_of(profile).get(int(types[row]), {})
                program[row] = type_number(own, "program_id") or program[row]
        elif op[row] >= 0:
            programs = Programs(profile) if programs is None else programs
            name = stats["hlo_op"].texts[int(op[row])].rsplit("::", 1)[-1]
            made[row] = instruction_of(programs, program[row], name) or named(name)
    return made, program


def _beside(profile: Profile, trace: Trace, event: Int64Array) -> BoolArray:
    """Which events lie on a line of what runs beside a device's ops."""
    is_beside = np.zeros(len(trace.lines) + 1, np.bool_)
    for one in devices_of(profile):
        is_beside[[place for place, role in one.lines if role is Role.ASYNC]] = True
    result: BoolArray = is_beside[trace.lines_of(event)]
    return result


_RUN, _NUMBER = re.compile(r"\D{0,40}(?<!-)(-?\d{1,20}), "), re.compile(r"-?\d{1,20}")


class _Key(NamedTuple):
    """The text of ``xla::RendezvousKey::ToString``, and the kind that stands before it."""

    kind: str
    run: str
    devices: str
    op: str


def _key_of(text: str) -> _Key | None:
    """The parts of a key; None for any other text. Each is looked for once, however long it is."""
    before, _, inside = text.partition("{")
    head, is_list, rest = inside.partition("global_devices=[")
    devices, is_closed, tail = rest.partition("]")
    run = _RUN.fullmatch(head.rpartition("run_id=")[2]) if "run_id=" in head else None
    op = _NUMBER.match(tail.partition(" op_id=")[2])
    if not (before.endswith("Key") and is_list and is_closed) or run is None or op is None:
        return None
    words = re.sub(r"\W+", " ", before).split(" ")[-1]
    return _Key(before[: len(before) - len(words)].rstrip(), run[1], devices, op[0])


def _of_rendezvous(profile: Profile, trace: Trace, devices: list[str]) -> _Part:
    """Collectives of XLA on CPUs: each device's thread waits in a rendezvous inside its op.

    The devices are added to ``devices``.
    """
    none = _Part(trace, np.zeros(0, np.int64))
    if trace.source != "events" or trace.name.code_of(RENDEZVOUS) < 0:
        return none
    wanted = frozenset(("name", "hlo_op", "program_id", "device_ordinal"))
    stats = OpStatColumns(profile.typed_stats(wanted))
    meets = np.flatnonzero(trace.name.codes == trace.name.code_of(RENDEZVOUS))
    codes = stats["name"].texts_at(trace.rows(meets))
    texts = stats["name"].texts
    keys = [_key_of(texts[code]) if code >= 0 else None for code in codes.tolist()]
    is_key = np.array([key is not None for key in keys], np.bool_)
    meets = meets[is_key]
    if not meets.size:
        return none
    has_op = np.zeros(trace.size, np.bool_)
    places = trace.places(stats["hlo_op"].row)
    has_op[places[places >= 0]] = True
    op = _around(profile, meets, has_op)
    part = _Part(trace, np.where(op >= 0, op, meets))
    part.arrive, part.end = trace.start[meets], trace.end[meets]
    made, _ = _instructions(profile, trace, part.event)
    rows = trace.rows(part.event)
    part.device = _on_cpus(stats, rows, devices)
    _note_instructions(part, made, [""] * meets.size, [-1] * meets.size)
    kind: list[str | None] = part.kind.to_list()
    ranks: list[str | None] = [None] * meets.size
    key: list[str | None] = [None] * meets.size
    times: Counter[tuple[int, str]] = Counter()
    matches = [result for result in keys if result is not None]
    for row in np.argsort(part.arrive, kind="stable").tolist():
        result = matches[row]
        members = [int(one) for one in re.findall(r"\d{1,18}", result.devices)]
        part.group_size[row] = len(members) or -1
        kind[row] = stated_collective(result.kind) or kind[row]
        ranks[row] = json.dumps(members) if members else None
        text = f"{result.run}|{result.op}|{ranks[row]}"
        # In a loop an op meets again under the same key.
        key[row] = f"{text}|{times[int(part.device[row]), text]}"
        times[int(part.device[row]), text] += 1
    part.kind, part.group_ranks, part.key = map(Names.encode, (kind, ranks, key))
    return part


def _on_cpus(stats: OpStatColumns, rows: Int64Array, devices: list[str]) -> Int64Array:
    """The place of each row's device among ``devices``, to which those of CPUs are added."""
    result = np.full(rows.size, -1, np.int64)
    known, number = stats["device_ordinal"].at(rows)[1], stats["device_ordinal"].integers_at(rows)
    for one in np.unique(number[known]).tolist():
        name = device_name(one)
        if name not in devices:
            devices.append(name)
        result[known & (number == one)] = devices.index(name)
    return result


_WITHIN = re.compile(r"(?:.*:)?_(?:Host)?(?:Send|Recv)", re.DOTALL)
"""Ops of TensorFlow by which parts of a graph in one process hand on values."""


def _of_host_ops(profile: Profile, trace: Trace, taken: Int64Array, devices: list[str]) -> _Part:
    """Other ops of hosts that are collectives, or messages to other processes, as TensorFlow's, and
    those of XLA on CPUs of several processes; but for those within another.
    """
    kinds = _changed(
        trace.name, lambda name: None if _WITHIN.fullmatch(name) else kind_of_collective(name)
    )
    if trace.source == "op_runs":
        runs = profile.columns("op_runs", frozenset(("kind", "op_type")))
        op_type, kind = (
            runs.names(one).take(trace.rows(slice(None))) for one in ("op_type", "kind")
        )
        by_type = _changed(op_type, _kind_of_type)
        kinds = _first([by_type, _changed(kind, {"rpc": "recv"}.get), kinds])
    communicates = activity_of(profile) == Activity.COMMUNICATION
    is_own = communicates & trace.within(trace.lines_on(HOST)) & (kinds.codes >= 0)
    is_own[taken] = False
    rule = profile.event_rules.collectives
    if rule is not None and (waits := rule.waits) is not None:
        # They wait for the library's work, which is the collective.
        is_own &= ~trace.name.per_row(lambda text: waits.fullmatch(text) is not None, np.bool_)
    event = np.flatnonzero(is_own)
    if event.size:
        parent = nesting_of(profile).parent[event]
        event = event[(parent < 0) | ~communicates[parent]]
    part = _Part(trace, event)
    part.kind = kinds.take(event)
    if event.size and trace.source == "events":
        _add_keys(profile, trace, part)
        _add_runs(profile, trace, part, devices)
    return part


def _add_runs(profile: Profile, trace: Trace, part: _Part, devices: list[str]) -> None:
    """What the programs say of ops of XLA on CPUs: a run has one number in all processes."""
    made, program = _instructions(profile, trace, part.event)
    if not any(made):
        return
    stats = OpStatColumns(profile.typed_stats(frozenset(("device_ordinal", "run_id"))))
    rows = trace.rows(part.event)
    part.device = _on_cpus(stats, rows, devices)
    members = _members(profile)
    ordinal, is_run = stats["device_ordinal"].integers_at(rows), stats["run_id"].at(rows)[1]
    runs = stats["run_id"].integers_at(rows)
    run = [str(runs[row] if is_run[row] else program[row]) for row in range(rows.size)]
    _note_instructions(part, made, run, [members.get(one, -1) for one in ordinal.tolist()])


def _kind_of_type(op_type: str) -> str | None:
    """The kind of collective that ops of a type of TensorFlow are."""
    return None if _WITHIN.fullmatch(op_type) else kind_of_collective(f"x:{op_type}")


def _add_keys(profile: Profile, trace: Trace, part: _Part) -> None:
    """TensorFlow's collectives: the same ``instance_key`` in the same ``group_key`` is one.

    Those of older programs have the same in every step: executions of each op are counted.
    """
    stats = OpStatColumns(profile.typed_stats(frozenset(("group_key", "instance_key"))))
    rows = trace.rows(part.event)
    (group, has_group), (number, has_number) = (
        (stats[name].integers_at(rows), stats[name].at(rows)[1])
        for name in ("group_key", "instance_key")
    )
    known = has_group & has_number
    part.sequence = np.where(known, number, -1)
    groups: list[str | None] = [None] * rows.size
    keys: list[str | None] = [None] * rows.size
    times: Counter[tuple[str, int]] = Counter()
    codes = trace.name.codes[part.event].tolist()
    for row in np.flatnonzero(known)[np.argsort(part.arrive[known], kind="stable")].tolist():
        groups[row] = str(group[row])
        text = f"{group[row]}|{number[row]}"
        keys[row] = f"{text}|{times[text, codes[row]]}"
        times[text, codes[row]] += 1
    part.group, part.key = Names.encode(groups), Names.encode(keys)


def _launched_by(
    profile: Profile, trace: Trace, event: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The launch of each of ``event``, the record around it, and the call of a host that enqueued
    the collective; -1 for what there is not.
    """
    none = np.full(event.size, -1, np.int64)
    links, rule = links_of(profile), profile.event_rules.collectives
    at = positions(links.target, event)
    if not (at >= 0).any():
        return none, none, none
    cause = np.where(at >= 0, links.cause[at], -1)
    if rule is None:
        return cause, none, none
    is_record = np.append(trace.name.codes == trace.name.code_of(rule.record), False)
    return (
        cause,
        _around(profile, cause, is_record[:-1]),
        _around(profile, cause, _calls(trace, rule)),
    )


def _calls(trace: Trace, rule: CollectiveStats) -> BoolArray:
    """Which events enqueue a collective."""
    if rule.call is None:
        return np.zeros(trace.size, np.bool_)
    matches = rule.call.fullmatch
    wanted: BoolArray = trace.name.per_row(lambda name: matches(name) is not None, np.bool_)
    return wanted


def _around(profile: Profile, events: Int64Array, wanted: BoolArray) -> Int64Array:
    """Each of ``events`` itself, or the innermost event around it, that is ``wanted``; else -1."""
    result = np.full(events.size, -1, np.int64)
    there = np.flatnonzero(events >= 0)
    if there.size and wanted.any():
        own = events[there]
        result[there] = np.where(wanted[own], own, nesting_of(profile).around(own, wanted))
    return result


def _innermost_described(profile: Profile, events: Int64Array, use: BoolArray) -> Int64Array:
    """The innermost event around each of ``events`` whose inputs have a recorded size."""
    if not use.any() or profile.event_rules.inputs is None:
        return np.full(events.size, -1, np.int64)
    codes, dims = texts_of(profile, DIMS)
    says = np.array([*(max(elements_of(text), default=0) > 0 for text in dims), False], np.bool_)
    return _around(profile, np.where(use, events, -1), says[codes])


def _add_sizes(profile: Profile, part: _Part, call: Int64Array, work: Int64Array) -> None:
    """Sizes, types and numbers of members that no record has: by what ``work`` was given, if it is
    of the same event as the row, else by the inputs of the ``call``, of which outputs come first.
    """
    size, members = part.size_bytes, part.group_size
    types = part.data_type.to_list()
    todo = np.flatnonzero((size < 0) & ((call >= 0) | (work >= 0)))
    if not todo.size or profile.event_rules.inputs is None:
        return
    codes, dims = texts_of(profile, DIMS)
    inputs = inputs_of(profile)
    for row in todo.tolist():
        kind, count, elements = part.kind[row] or "", int(members[row]), -1
        sources = [(int(call[row]), True), (int(work[row]), False)]
        # What a library did itself counts, whatever was called.
        for event, is_call in sources[::-1] if work[row] == part.event[row] else sources:
            if event < 0 or kind == "barrier":
                continue
            given = elements_of(dims[codes[event]]) if codes[event] >= 0 else ()
            if elements < 0:
                elements, count = _counted(kind, given, count, is_call=is_call)
            if types[row] is None and inputs.types[event] >= 0:
                types[row] = element_type(inputs.type_texts[inputs.types[event]])
        each = bytes_of_type(types[row] or "")
        members[row] = min(count, _MOST)
        size[row] = min(elements * each, _MOST_BYTES) if elements >= 0 and each > 0 else -1
    part.data_type = Names.encode(types)


def _counted(kind: str, given: tuple[int, ...], members: int, *, is_call: bool) -> tuple[int, int]:
    """How many elements count for the size of a collective (-1: not known), and its members."""
    first, second = [*given, -1, -1][:2]
    is_joined = kind in _OF_OUTPUT or kind in _OF_INPUT
    if is_call and (is_joined or kind == "all-to-all"):
        output, taken = first, second
    else:
        # What was enqueued is given its inputs alone.
        output, taken = -1, first if is_call or not given or min(given) < 0 else sum(given)
    whole, share = (output, taken) if kind in _OF_OUTPUT else (taken, output)
    if not (kind in _OF_OUTPUT or (is_joined and is_call)):
        return taken, members
    if members < 0 and whole > 0 and share > 0 and whole % share == 0:
        members = whole // share
    if whole < 0 and share >= 0 and members > 0:
        whole = share * members
    return whole, members


def _of_backends(profile: Profile, trace: Trace) -> _Part:
    """What a host's own library did, on threads of its own: when it arrived there, and the call
    that had enqueued it.
    """
    rule = profile.event_rules.collectives
    if rule is None or rule.work is None or trace.source != "events":
        return _Part(trace, np.zeros(0, np.int64))
    work = rule.work

    def library_of(name: str) -> str | None:
        result = work.fullmatch(name)
        return result and result[1]

    library = _changed(trace.name, library_of)
    is_work = (library.codes >= 0) & trace.within(trace.lines_on(HOST))
    is_work &= activity_of(profile) == Activity.COMMUNICATION
    part = _Part(trace, np.flatnonzero(is_work))
    part.kind = _changed(trace.name.take(part.event), kind_of_collective)
    called = _calls_of_work(profile, trace, rule, part)
    part.launch = np.append(trace.start, -1)[called]
    _add_groups(profile, trace, part, library.take(part.event), called)
    _add_peers(profile, trace, part, called)
    _add_sizes(profile, part, called, part.event)
    return part


def _add_groups(
    profile: Profile, trace: Trace, part: _Part, library: Names, called: Int64Array
) -> None:
    """The groups, which no event says: the only one that the library serves; of several the only
    one of a size, where outputs and inputs of calls say how many members it has.

    A library has threads of its own for each group (``ProcessGroupGloo.cpp``): of what one thread
    does, all is of one group.
    """
    codes, dims = texts_of(profile, DIMS)
    kinds = _changed(_at(trace.name, called), stated_collective)
    line = trace.lines_of(part.event)
    sizes: dict[int, set[int]] = defaultdict(set)
    for row in np.flatnonzero(_is_one_of(kinds, _OF_OUTPUT | _OF_INPUT)).tolist():
        if (code := codes[called[row]]) >= 0:
            size = _counted(kinds[row] or "", elements_of(dims[code]), -1, is_call=True)[1]
            sizes[int(line[row])] |= {size} - {-1}
    groups = [one for one in profile.process_groups() if one.size != 1]
    names: list[str | None] = [None] * part.event.size
    ranks: list[str | None] = [None] * part.event.size
    for row, (name, thread) in enumerate(zip(library.to_list(), line.tolist(), strict=True)):
        own = [one for one in groups if (name or "") in one.backend or not one.backend]
        known = sizes.get(thread, set())
        size = min(known) if len(known) == 1 else -1
        fitting = own if len(own) == 1 else [one for one in own if one.size == size]
        part.group_size[row] = fitting[0].size if len(fitting) == 1 else size
        if len(fitting) == 1:
            names[row] = fitting[0].name
            ranks[row] = json.dumps(fitting[0].ranks) if fitting[0].ranks else None
    part.group, part.group_ranks = Names.encode(names), Names.encode(ranks)


def _add_peers(profile: Profile, trace: Trace, part: _Part, called: Int64Array) -> None:
    """With whom messages are exchanged: the call says the place in the group."""
    rule = profile.event_rules.collectives
    is_message = _is_one_of(part.kind, {"send", "recv"}) & (called >= 0)
    if rule is None or not rule.arguments or not is_message.any():
        return
    rows = np.flatnonzero(is_message)
    stats = OpStatColumns(profile.typed_stats(frozenset((rule.arguments,))))[rule.arguments]
    codes = stats.texts_at(trace.rows(called[rows])).tolist()
    for row, code in zip(rows.tolist(), codes, strict=True):
        members = numbers_of(part.group_ranks[row])
        try:
            place = int(json.loads(stats.texts[code])[rule.peer_argument]) if code >= 0 else -1
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            continue
        if 0 <= place < len(members):
            part.peer[row] = members[place]


def _calls_of_work(
    profile: Profile, trace: Trace, rule: CollectiveStats, part: _Part
) -> Int64Array:
    """The call that enqueued each row of ``part``, -1 for none that fits.

    Nothing links the two but their order, and the shapes of their inputs or the kind. A call with a
    record in it is one of a device.
    """
    event = part.event
    result = np.full(event.size, -1, np.int64)
    calls = np.flatnonzero(_calls(trace, rule))
    if not event.size or not calls.size:
        return result
    is_record = trace.name.codes == trace.name.code_of(rule.record)
    recorded = _around(profile, np.flatnonzero(is_record), _calls(trace, rule))
    calls = np.setdiff1d(calls, recorded)
    codes, dims = texts_of(profile, DIMS)
    given = [[one for one in elements_of(text) if one >= 0] for text in dims]
    # A call is given in one list what its work has one by one.
    shapes = [frozenset([*one, sum(one)]) if one else frozenset[int]() for one in [*given, []]]
    kinds = _changed(trace.name.take(calls), stated_collective).to_list()
    kind_of = dict(zip(calls.tolist(), kinds, strict=True))
    waiting: deque[int] = deque()
    coming = deque(calls[np.argsort(trace.start[calls], kind="stable")].tolist())
    last = -1

    def fits(call: int, row: int) -> bool:
        own, others = shapes[codes[event[row]]], shapes[codes[call]]
        if own and others:
            return bool(own & others)
        return kind_of[call] == part.kind[row]

    for row in np.argsort(trace.start[event], kind="stable").tolist():
        while coming and trace.start[coming[0]] <= trace.start[event[row]]:
            waiting.append(coming.popleft())
        near = range(min(len(waiting), _PENDING))
        place = next((one for one in near if fits(waiting[one], row)), -1)
        if place >= 0:
            last = result[row] = waiting[place]
            del waiting[place]
        elif last >= 0 and fits(last, row) and kind_of[last] != part.kind[row]:
            # gloo does a reduce-scatter of a list as an all-reduce for each part of it.
            result[row] = last
    return result


def _is_one_of(column: Names, texts: AbstractSet[str]) -> BoolArray:
    result: BoolArray = column.per_row(texts.__contains__, np.bool_)
    return result


def _at(column: Names, rows: Int64Array) -> Names:
    """The texts at ``rows``, null for -1."""
    return Names(np.append(column.codes, np.int32(-1))[rows], column.values)


def _changed(column: Names, change: Callable[[str], str | None]) -> Names:
    """What ``change`` makes of each text, null for nothing."""
    used = np.unique(column.codes[column.codes >= 0]).tolist()
    texts = {code: change(column.values[code]) for code in used}
    code_of = {
        text: number for number, text in enumerate(dict.fromkeys(filter(None, texts.values())))
    }
    table = np.full(len(column.values) + 1, -1, np.int32)
    for code, text in texts.items():
        table[code] = code_of[text] if text else -1
    return Names(table[column.codes], list(code_of))


def _first(columns: list[Names]) -> Names:
    """Of each row the first text of ``columns`` that is not null."""
    codes, values = np.full(len(columns[0]), -1, np.int32), list[str]()
    for column in columns:
        codes = np.where((codes < 0) & (column.codes >= 0), column.codes + len(values), codes)
        values += column.values
    return Names(codes.astype(np.int32), values)
