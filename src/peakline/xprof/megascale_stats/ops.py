"""The ops by which TensorCores send data to other slices and receive it, with their HLO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from peakline.hlo.messages import read_module
from peakline.hlo.program import leaves, size_of
from peakline.timing.ops.tpu import is_op_line, types_of
from peakline.trace.events import Trace, trace_of
from peakline.xprof.rules.programs import is_sound
from peakline.xprof.rules.step_events import TPU_PREFIX

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto, ShapeProto
    from peakline.tables import Profile


_GROUPS, _PAIRS, _ENDPOINTS = 2, 3, 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a number."""


def group_size(content: bytes) -> int:
    """The endpoints of the first group of a ``DcnCollectiveInfoProto``; 1 where there are pairs, 0
    where nothing is known.

    The message is ``plugin/xprof/protobuf/dcn_collective_info.proto`` of openxla/xprof, read field
    by field.
    """
    first: bytes | None = None
    for number, value in _fields(content):
        if number == _PAIRS:
            return 1
        if number == _GROUPS and first is None:
            first = value
    return sum(number == _ENDPOINTS for number, _ in _fields(first or b""))


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the messages in ``content``, up to where it is damaged."""
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        number, kind = tag >> 3, tag & 7
        size = 0
        if kind == _VARINT:
            _, at = _number(content, at)
        elif kind == _BYTES:
            size, at = _number(content, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            return
        if at + size > len(content):
            return
        if kind == _BYTES:
            yield number, content[at : at + size]
        at += size


def _number(content: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where it ends: behind the content where it is cut."""
    value = 0
    for place in range(_LONGEST):
        if at + place >= len(content):
            break
        byte = content[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    return 0, len(content) + 1


OPCODES = frozenset(("send", "send-done", "recv", "recv-done"))
_MODULES = "XLA Modules"
_NUMBERED = re.compile(r".*\((\d{1,20})\)", re.DOTALL)
_RENDEZVOUS, _TYPE = "_xla_host_transfer_rendezvous", "_xla_megascale_transfer_type"
_CATEGORIES = ("host send", "host recv")
_INFO = "dcn_collective_info"


class Op(NamedTuple):
    """What a program says of an op; ``rendezvous`` and ``transfer_type`` are None where it does
    not. ``size`` is that of its result in bytes.
    """

    name: str
    opcode: str
    channel: int
    rendezvous: str | None
    transfer_type: str | None
    size: int


class Run(NamedTuple):
    """One execution of an op, times in ps; ``group`` is how many devices it says to exchange,
    ``line_ps`` when its line began.
    """

    op: Op
    start_ps: int
    end_ps: int
    group: int
    line_ps: int


def runs_by_core(profile: Profile, *, compatible: bool) -> dict[int, list[Run]]:
    """What each TensorCore sent and received, in order of time.

    With ``compatible`` only programs count that XLA takes and that the modules' line calls as they
    are called. Executions whose instruction no program has are counted in the warning
    ``transfers_unknown``. Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    chosen = _types(profile)
    if not chosen or trace.source != "events":
        return {}
    find = cache(_Programs(profile, compatible=compatible).find)
    result: dict[int, list[Run]] = {}
    unknown = 0
    for core, plane in _cores(trace).items():
        runs = result.setdefault(core, [])
        for event, module in _events(profile, trace, plane, chosen):
            name, group = chosen[event.kind]
            op = find(module, name)
            if op is None:
                unknown += 1
            elif op.opcode in OPCODES:
                runs.append(Run(op, event.start_ps, event.end_ps, group, event.line_ps))
    if unknown:
        text = "sends and receives of programs that the profile does not hold, left out"
        profile.warn("transfers_unknown", text, unknown, once=True)
    return result


class _Event(NamedTuple):
    kind: int
    start_ps: int
    end_ps: int
    line_ps: int


def _cores(trace: Trace) -> dict[int, int]:
    """The places of the planes of TensorCores, the first of each, by their numbers."""
    result: dict[int, int] = {}
    for place, plane in enumerate(trace.planes):
        number = plane.name.removeprefix(TPU_PREFIX)
        if plane.name.startswith(TPU_PREFIX) and number.isascii() and number.isdigit():
            result.setdefault(int(number[:9]), place)
    return result


def _types(profile: Profile) -> dict[int, tuple[str, int]]:
    """Name and size of group of the kinds of events whose category says that they send or receive
    through the host.
    """
    if "event_type_stats" not in profile.tables:
        return {}
    stats = profile.columns("event_type_stats")
    named = stats.names("name")
    rows = np.flatnonzero(named.codes == named.code_of("hlo_category"))
    owners, values = stats.array("type_id")[rows], stats.names("value").take(rows)
    wanted = values.per_row(lambda text: any(each in text for each in _CATEGORIES), np.bool_)
    info = profile.type_bytes(_INFO)
    names = profile.columns("event_types").names("display_name")
    return {
        kind: (names[kind] or "", group_size(info.get(kind, b"")))
        for kind in owners[wanted].tolist()
    }


def _events(
    profile: Profile, trace: Trace, plane: int, chosen: Mapping[int, object]
) -> Iterator[tuple[_Event, str]]:
    """The events of the chosen kinds, with the name of the module run that each lies in."""
    of_plane = [line for line in trace.lines_in(plane) if line.last > line.first]
    modules = next((line for line in of_plane if line.name == _MODULES), None)
    if modules is None:
        return
    begins, ends = trace.start[modules.events], trace.end[modules.events]
    kinds = np.fromiter(chosen, np.int64)
    bases = profile.columns("lines").array("start_ps")
    for line in of_plane:
        if not is_op_line(trace.planes[plane].name, line.name):
            continue
        types = types_of(profile, trace.rows(line.events))
        events = line.first + np.flatnonzero(np.isin(types, kinds))
        start, end = trace.start[events], trace.end[events]
        inside = np.searchsorted(begins, start, side="right") - 1
        within = (inside >= 0) & (ends[np.maximum(inside, 0)] >= end)
        for place in np.flatnonzero(within).tolist():
            event = _Event(
                int(types[events[place] - line.first]), int(start[place]), int(end[place]),
                int(bases[line.line_id]),
            )  # fmt: skip
            yield event, trace.name[modules.first + int(inside[place])] or ""


class _Programs:
    """The sends and receives of compiled programs, read when one is wanted."""

    def __init__(self, profile: Profile, *, compatible: bool) -> None:
        self._programs, self._compatible = profile.programs(), compatible
        self._numbers: dict[int | None, int] = {}
        for number in range(len(self._programs or ())):
            if self._programs is not None:
                self._numbers.setdefault(self._programs.program_id(number), number)
        self._read: dict[int, tuple[str, dict[str, Op]]] = {}

    def find(self, module: str, name: str) -> Op | None:
        """An instruction of the program that the run of a module names."""
        numbered = _NUMBERED.fullmatch(module)
        number = self._numbers.get(int(numbered[1])) if numbered else None
        if number is None:
            return None
        if number not in self._read:
            self._read[number] = self._ops(number)
        own, ops = self._read[number]
        if self._compatible and module != f"{own}({self._id(number)})":
            return None
        return ops.get(name.removeprefix("%"))

    def _id(self, number: int) -> int | None:
        return None if self._programs is None else self._programs.program_id(number)

    def _ops(self, number: int) -> tuple[str, dict[str, Op]]:
        parts = None if self._programs is None else read_module(self._programs.data(number))
        if parts is None or (self._compatible and not is_sound(parts)):
            return "", {}
        result: dict[str, Op] = {}
        for computation in parts.computations:
            for made in computation.instructions:
                if made.opcode in OPCODES:
                    result.setdefault(made.name, _op(made))
        return parts.head.name, result


def _op(made: HloInstructionProto) -> Op:
    said = made.frontend_attributes.map
    return Op(
        made.name, made.opcode, made.channel_id, said.get(_RENDEZVOUS), said.get(_TYPE),
        _size(made.shape),
    )  # fmt: skip


def _size(shape: ShapeProto) -> int:
    """The bytes of the arrays that a shape holds: of a send's or receive's tuple all of them."""
    return sum(size_of(leaf) for _, leaf in leaves(shape))
