"""The devices of a trace, and which of their lines show what they did."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import DEVICE, PART, Trace, TraceLine, TracePlane, device_key, trace_of

_DERIVED = re.compile(
    r"(?is)(?:sparse ?core )?(?:steps|modules)|(?:xla|hlo) (?:modules|traceme)|"
    r"(?:framework|tensorflow|name) (?:ops|name scope|scopes?)|name scope|source(?: code)?|"
    r"launch stats|overheads?|(?:async )?xla ops.*derived.*|.*\bderived\b.*"
)
"""Lines that repeat what others show: XProf makes them, and so do some runtimes."""
_OPS = re.compile(r"(?i)(?:sparse ?core |tensor ?core )?(?:xla |hlo )?ops")
_ASYNC = re.compile(r"(?i)async (?:sparse ?core )?(?:xla )?ops")
_TRACEME = re.compile(r"(?i)xla traceme")
MOST_DEVICES = 2048
"""What is known of each is looked for among the work of all: a profile of a host has a few."""

_Of = TypeVar("_Of")


class Role(Enum):
    """What a line of a device is: its events side by side, its ops one in the other, or beside."""

    STREAM = 0
    OPS = 1
    ASYNC = 2


@dataclass(frozen=True)
class Device:
    """A device that did something; ``lines`` are places in `Trace.lines` with what each is."""

    plane_id: int
    name: str
    lines: tuple[tuple[int, Role], ...]
    is_tpu: bool = False


def devices_of(profile: Profile) -> tuple[Device, ...]:
    """The devices of the profile with work of their own, in the order of their planes.

    Lines that are derived from others are left out. An XLA device whose streams are recorded has
    its op line derived from them. Of very many devices the first count; the others are a warning.
    """
    return first_devices(profile, _all_devices(profile))


def first_devices(profile: Profile, result: tuple[_Of, ...]) -> tuple[_Of, ...]:
    """The first `MOST_DEVICES` of what there is one of for each device; others are a warning."""
    if left_out := len(result[MOST_DEVICES:]):
        text = f"devices beyond the first {MOST_DEVICES:,}, whose work is not looked at"
        profile.warn("devices_left_out", text, left_out, once=True)
    return result[:MOST_DEVICES]


@once
def _all_devices(profile: Profile) -> tuple[Device, ...]:
    trace = trace_of(profile)
    return tuple(_of_runs(trace) if trace.source == "op_runs" else _of_planes(trace))


def _of_planes(trace: Trace) -> list[Device]:
    result = []
    for number, plane in enumerate(trace.planes):
        if plane.kind != DEVICE:
            continue
        is_tpu = "tpu" in plane.name.lower()
        roles = [
            (place, _role(trace.lines[place], is_tpu=is_tpu))
            for place in trace.places_of_lines[number]
            if trace.lines[place].last > trace.lines[place].first
        ]
        lines = [(place, role) for place, role in roles if role is not None]
        if not is_tpu and any(role is Role.STREAM for _, role in lines):
            lines = [(place, role) for place, role in lines if role is Role.STREAM]
        if lines:
            result.append(Device(plane.plane_id, plane.name, tuple(lines), is_tpu))
    return result


def _role(line: TraceLine, *, is_tpu: bool) -> Role | None:
    if line.derived is not None:
        return None
    if _OPS.fullmatch(line.name):
        return Role.OPS
    if _ASYNC.fullmatch(line.name):
        return Role.ASYNC
    if is_tpu:
        # It shows barriers, which no op line does.
        return Role.STREAM if _TRACEME.fullmatch(line.name) else None
    return None if _DERIVED.fullmatch(line.name) else Role.STREAM


def _of_runs(trace: Trace) -> list[Device]:
    """Devices of StepStats: the streams and the copies of a device are recorded as devices."""
    homes: dict[tuple[str, str], tuple[TracePlane, str]] = {}
    lines: dict[tuple[str, str], list[tuple[int, Role]]] = defaultdict(list)
    for number, plane in enumerate(trace.planes):
        if plane.kind != DEVICE:
            continue
        name = PART.sub("", plane.name)
        key = device_key(name)
        homes.setdefault(key, (plane, name))
        lines[key] += ((place, Role.STREAM) for place in trace.places_of_lines[number])
    return [Device(plane.plane_id, name, tuple(lines[key])) for key, (plane, name) in homes.items()]
