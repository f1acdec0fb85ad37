"""The launches of kernels, and what their launch parameters say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import positions
from peakline.timing.device_ops import device_executions, framework_executions
from peakline.timing.op_stats_columns import op_stats_of
from peakline.timing.plane_stats import vendors_of
from peakline.timing.tensor_cores import could_use, uses
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.distribution import distinct
from peakline.trace.events import Trace, trace_of

_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,20})[ \t\n\v\f\r]*")
_MOST = 2**32
_MEMSET = re.compile(r"(?i)(?:cu|cuda|hip)?memset\b")
_KINETO = frozenset(("grid", "block", "registers per thread", "shared memory", "warps per SM"))
_KINETO_OCCUPANCY = "est. achieved occupancy %"
Dim = tuple[int, int, int]


class Launch(NamedTuple):
    """What distinguishes kernels; sorts as XProf does. ``op`` is empty where not known."""

    name: str
    grid: Dim
    block: Dim
    registers: int
    static_shared: int
    dynamic_shared: int
    uses_tensor_cores: bool
    could_use: bool
    op: str


@dataclass(frozen=True, eq=False)
class Launches:
    """The distinct launches with the occupancy (in percent) of the first of each.

    ``launch`` is the place in ``launches`` of every run, ``duration_ps`` how long it took.
    """

    launches: dict[Launch, float]
    launch: Int64Array
    duration_ps: Int64Array


WORDS: Mapping[str, str] = {
    "regs": "registers", "static_shared": "static_shared", "group_mem": "static_shared",
    "dynamic_shared": "dynamic_shared",
}  # fmt: skip
"""What NVIDIA's and AMD's words for parameters of a launch set."""


class Details(NamedTuple):
    """The parameters of a launch, the first five as in `Launch`; 1 (dimensions) or 0 by default."""

    grid: Dim = (1, 1, 1)
    block: Dim = (1, 1, 1)
    registers: int = 0
    static_shared: int = 0
    dynamic_shared: int = 0
    occupancy: float = 0.0


def parse_details(text: str, words: Mapping[str, str] = WORDS) -> Details:
    """The parameters in a ``kernel_details`` text: ``key:value``, separated by blanks or newlines.

    ``words`` gives for keys of whole numbers the parameter that they set.
    """
    found = Details()._asdict()
    for token in re.split("[ \n]", text):
        key, colon, value = token.partition(":")
        if not colon or ":" in value:
            continue
        if key == "occ_pct":
            found["occupancy"] = _real(value, found["occupancy"])
        elif key in ("grid", "block"):
            sizes = [_unsigned(size) for size in value.split(",")]
            if len(sizes) == 3 and None not in sizes:
                found[key] = tuple(sizes)
        elif key in words and (number := _unsigned(value)) is not None:
            found[words[key]] = number
    return Details(**found)


def _unsigned(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < _MOST else None


def _real(text: str, otherwise: float) -> float:
    try:
        return float.fromhex(text) if "0x" in text.lower() else float(text.replace("_", "?"))
    except (ValueError, OverflowError):
        return otherwise


def has_devices(profile: Profile) -> bool:
    """Whether the profile has events of a device, without reading one."""
    # Most profiles have none.
    return "events" in profile.tables and "device" in profile.columns("planes").names("kind").values


def launches_of(profile: Profile) -> Launches:
    """Every run of a kernel. Raises InputError when the profile cannot be read."""
    if not has_devices(profile) or trace_of(profile).source != "events":
        return collect([], np.zeros(0, np.int64), np.zeros(0, np.int64))
    find = _of_kineto if profile.has_categories else _of_xspace
    return find(profile, trace_of(profile))


def _of_xspace(profile: Profile, trace: Trace) -> Launches:
    found = device_executions(profile)
    ops = framework_executions(profile)
    stats = op_stats_of(profile)["kernel_details"]
    rows = trace.rows(found.event)
    details = stats.texts_at(rows)
    use = np.flatnonzero((details >= 0) & (found.end > found.start))
    details, rows = details[use], rows[use]
    name, op, plane = trace.name.codes[found.event[use]], ops.op[use], found.plane[use]
    vendors = vendors_of(profile)
    first, which = distinct(name, details, op, plane)
    said = {code: parse_details(stats.texts[code]) for code in np.unique(details).tolist()}
    made = []
    for row in first.tolist():
        key, text = ops.keys[int(op[row])], trace.name.values[int(name[row])]
        one = said[int(details[row])]
        vendor = vendors.get(trace.planes[int(plane[row])].plane_id, "")
        is_einsum = key.op_type in ("Einsum", "XlaEinsum")
        made.append(_launch(text, key.name, one, vendor, is_einsum=is_einsum))
    return collect(made, which, (found.end - found.start)[use])


def _of_kineto(profile: Profile, trace: Trace) -> Launches:
    found = device_executions(profile)
    ops = framework_executions(profile)
    use = np.flatnonzero(_is_kernel(profile, trace)[found.event])
    rows = trace.rows(found.event[use])
    order = np.argsort(rows, kind="stable")
    said: dict[str, Int32Array] = {}
    stats = profile.columns("event_stats")
    stat_names, values = stats.names("name"), stats.names("value")
    for label in (*_KINETO, _KINETO_OCCUPANCY):
        of_label = np.flatnonzero(stat_names.codes == stat_names.code_of(label))
        codes = np.full(rows.size, -1, np.int32)
        owner = stats.array("event_id")[of_label]
        at = positions(rows[order], owner)
        codes[order[at[at >= 0]]] = values.codes[of_label[at >= 0]]
        said[label] = codes
    name, op = trace.name.codes[found.event[use]], ops.op[use]
    first, which = distinct(name, op, *said.values())
    made = []
    for row in first.tolist():
        text_of = {
            label: values.values[int(codes[row])] if codes[row] >= 0 else ""
            for label, codes in said.items()
        }
        key, text = ops.keys[int(op[row])], trace.name.values[int(name[row])]
        one = Details(
            _dim(text_of["grid"]), _dim(text_of["block"]),
            _unsigned(text_of["registers per thread"]) or 0,
            0, _unsigned(text_of["shared memory"]) or 0, _real(text_of[_KINETO_OCCUPANCY], 0.0),
        )  # fmt: skip
        made.append(_launch(text, key.name, one))
    return collect(made, which, (found.end - found.start)[use])


def _launch(
    text: str, op: str, details: Details, vendor: str = "", *, is_einsum: bool = False
) -> tuple[Launch, float]:
    """A launch of the kernel ``text`` by ``op``, with its occupancy."""
    # A kernel that stands for itself has no op.
    op = "" if op == text else op
    used = uses(text, vendor)
    could = used or could_use(op) or is_einsum
    return Launch(text, *details[:5], used, could, op), details.occupancy


def _is_kernel(profile: Profile, trace: Trace) -> BoolArray:
    """Which events of a Chrome trace are kernels: what streams of devices did but for copies.

    So it is for every device and category; only setting memory is known by its name.
    """
    on_stream = np.zeros(trace.size, np.bool_)
    for device in devices_of(profile):
        for place, role in device.lines:
            on_stream[trace.lines[place].events] = role is Role.STREAM and not device.is_tpu
    works = np.isin(activity_of(profile), (Activity.COMPUTE, Activity.COMMUNICATION))
    sets = np.array([*map(_MEMSET.match, trace.name.values), None]).astype(np.bool_)
    return on_stream & works & ~sets[trace.name.codes]


def _dim(text: str) -> Dim:
    sizes = [_unsigned(size) for size in text.strip("[]").split(",")]
    if len(sizes) != 3 or None in sizes:
        return (1, 1, 1)
    x, y, z = (size or 0 for size in sizes)
    return x, y, z


def collect(made: list[tuple[Launch, float]], which: AnyArray, duration: AnyArray) -> Launches:
    """The launches ``made``, with their occupancy in percent, each once.

    ``which`` is the place in ``made`` of every run, ``duration`` how long it took, in ps.
    """
    distinct_launches: dict[Launch, float] = {}
    for launch, occupancy in made:
        distinct_launches.setdefault(launch, occupancy if math.isfinite(occupancy) else 0.0)
    number = {launch: place for place, launch in enumerate(distinct_launches)}
    place_of = np.array([number[launch] for launch, _ in made], np.int64)
    runs = place_of[which] if place_of.size else np.zeros(0, np.int64)
    return Launches(distinct_launches, runs, duration)
