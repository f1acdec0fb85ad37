"""The launches of kernels, and what their launch parameters say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from peakline.timing.device_ops import device_executions, framework_executions
from peakline.timing.device_peaks import vendors_of
from peakline.timing.device_programs import Programs
from peakline.timing.host_ops import is_derived
from peakline.timing.op_names import parse_op_name
from peakline.timing.op_stats_columns import op_stats_of
from peakline.timing.tensor_cores import could_use, einsum_could_use, uses
from peakline.trace.activity import Activity, activity_of
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.distribution import distinct
from peakline.trace.events import Trace, trace_of
from peakline.xprof.rules.device_ops import device_prefix

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["Launch", "Launches", "launches_of", "parse_details"]

_Array = npt.NDArray[Any]
_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,20})[ \t\n\v\f\r]*")
_MOST = 2**32
_MEMSET = re.compile(r"(?i)(?:cu|cuda|hip)?memset\b")
_KINETO = frozenset(("grid", "block", "registers per thread", "shared memory", "warps per SM"))
_KINETO_OCCUPANCY = "est. achieved occupancy %"
Dim = tuple[int, int, int]


class Launch(NamedTuple):
    """What tells one kernel from another; sorts as XProf does. ``op`` is empty where not known."""

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
    launch: npt.NDArray[np.int64]
    duration_ps: npt.NDArray[np.int64]


class Details(NamedTuple):
    """The parameters of a launch; what is not told is 1 (dimensions) or 0."""

    grid: Dim = (1, 1, 1)
    block: Dim = (1, 1, 1)
    registers: int = 0
    static_shared: int = 0
    dynamic_shared: int = 0
    occupancy: float = 0.0


def parse_details(text: str, *, strict: bool = False) -> Details:
    """The parameters in a ``kernel_details`` text: ``key:value``, separated by blanks or newlines.

    ``strict`` is XProf's rule, which does not know AMD's words.
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
        elif (number := _unsigned(value)) is not None:
            if key == "regs":
                found["registers"] = number
            elif key == "static_shared" or (key == "group_mem" and not strict):
                found["static_shared"] = number
            elif key == "dynamic_shared":
                found["dynamic_shared"] = number
    return Details(**found)


def _unsigned(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < _MOST else None


def _real(text: str, otherwise: float) -> float:
    try:
        return float.fromhex(text) if "0x" in text.lower() else float(text.replace("_", "?"))
    except (ValueError, OverflowError):
        return otherwise


def launches_of(profile: Profile, *, strict: bool = False) -> Launches:
    """Every run of a kernel; ``strict`` is XProf's rule."""
    # Asked of every profile, and most have no device: without reading an event.
    kinds = profile.columns("planes").names("kind").to_list() if "events" in profile.tables else []
    if "device" not in kinds:
        return Launches({}, np.zeros(0, np.int64), np.zeros(0, np.int64))
    trace = trace_of(profile)
    if trace.source != "events":
        return Launches({}, np.zeros(0, np.int64), np.zeros(0, np.int64))
    if profile.has_categories:
        return _of_kineto(profile, trace)
    return _of_xspace_strictly(profile, trace) if strict else _of_xspace(profile, trace)


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
    made: list[tuple[Launch, float]] = []
    for row in first.tolist():
        key, text = ops.keys[int(op[row])], trace.name.values[int(name[row])]
        # A kernel that stands for itself has no op.
        framework = "" if key.name == text else key.name
        one = parse_details(stats.texts[int(details[row])])
        used = uses(text, vendors.get(trace.planes[int(plane[row])].plane_id, ""))
        could = used or could_use(framework) or key.op_type in ("Einsum", "XlaEinsum")
        launch = Launch(
            text, one.grid, one.block, one.registers, one.static_shared, one.dynamic_shared,
            used, could, framework,
        )  # fmt: skip
        made.append((launch, one.occupancy))
    return _collect(made, which, (found.end - found.start)[use])


def _of_xspace_strictly(profile: Profile, trace: Trace) -> Launches:
    """By XProf's rule, from the events in the order of the file."""
    events = profile.columns("events", frozenset(("line_id", "name", "duration_ps")))
    stats, programs = op_stats_of(profile), Programs(profile, "xprof")
    prefix, line_id = device_prefix(trace), events.array("line_id")
    lines = {
        line.line_id: trace.planes[line.plane]
        for line in trace.lines
        if trace.planes[line.plane].name.startswith(prefix) and not is_derived(line)
    }
    kernel = stats["kernel_details"]
    rows = kernel.row[kernel.texts_at(kernel.row) >= 0]
    rows = rows[np.isin(line_id[rows], list(lines))]
    duration = events.array("duration_ps")[rows]
    rows, duration = rows[duration != 0], duration[duration != 0]
    columns = [
        stats[name].texts_at(rows) for name in ("kernel_details", "tf_op", "equation", "hlo_op")
    ]
    program, line = stats["program_id"].integers_at(rows), line_id[rows]
    names = events.names("name").take(rows)
    planes = np.array([lines[number].plane_id for number in line.tolist()], np.int64)
    first, which = distinct(names.codes, *columns, program, planes)
    vendors, texts = vendors_of(profile), kernel.texts
    made = []
    for row in first.tolist():
        details, framework, equation, hlo = (
            texts[int(column[row])] if column[row] >= 0 else "" for column in columns
        )
        name = names[row] or ""
        used = uses(name, vendors.get(int(planes[row]), ""), strict=True)
        op, could = "", False
        if framework:
            op = parse_op_name(framework).name
            could = used or could_use(op, strict=True) or einsum_could_use(equation)
        if hlo:
            instruction = programs.find(int(program[row]) % 2**64, hlo.rsplit("::", 1)[-1])
            if instruction is not None:
                op = instruction.op_name
                could = could or could_use(op, strict=True)
        one = parse_details(details, strict=True)
        launch = Launch(
            name, one.grid, one.block, one.registers, one.static_shared, one.dynamic_shared,
            used, could, op,
        )  # fmt: skip
        made.append((launch, one.occupancy))
    with np.errstate(over="ignore"):
        # Cut towards zero, as C does.
        whole = np.sign(duration) * (np.abs(duration) // 1000) * 1000
    return _collect(made, which, whole)


def _of_kineto(profile: Profile, trace: Trace) -> Launches:
    found = device_executions(profile)
    ops = framework_executions(profile)
    use = np.flatnonzero(_is_kernel(profile, trace)[found.event])
    rows = trace.rows(found.event[use])
    order = np.argsort(rows, kind="stable")
    said: dict[str, npt.NDArray[np.int32]] = {}
    stats = profile.columns("event_stats")
    stat_names, values = stats.names("name"), stats.names("value")
    for label in (*_KINETO, _KINETO_OCCUPANCY):
        of_label = np.flatnonzero(stat_names.codes == stat_names.code_of(label))
        codes = np.full(rows.size, -1, np.int32)
        owner = stats.array("event_id")[of_label]
        if rows.size and owner.size:
            at = np.minimum(np.searchsorted(rows[order], owner), rows.size - 1)
            same = rows[order][at] == owner
            codes[order[at[same]]] = values.codes[of_label[same]]
        said[label] = codes
    name, op = trace.name.codes[found.event[use]], ops.op[use]
    first, which = distinct(name, op, *said.values())
    made = []
    for row in first.tolist():
        told = {
            label: values.values[int(codes[row])] if codes[row] >= 0 else ""
            for label, codes in said.items()
        }
        key, text = ops.keys[int(op[row])], trace.name.values[int(name[row])]
        framework = "" if key.name == text else key.name
        used = uses(text, "")
        launch = Launch(
            text, _dim(told["grid"]), _dim(told["block"]),
            _unsigned(told["registers per thread"]) or 0, 0, _unsigned(told["shared memory"]) or 0,
            used, used or could_use(framework), framework,
        )  # fmt: skip
        made.append((launch, _real(told[_KINETO_OCCUPANCY], 0.0)))
    return _collect(made, which, (found.end - found.start)[use])


def _is_kernel(profile: Profile, trace: Trace) -> npt.NDArray[np.bool_]:
    """Which events of a Chrome trace are kernels: what streams of devices did but for copies.

    So it is for every device and category; only setting memory is known by its name.
    """
    on_stream = np.zeros(trace.size, np.bool_)
    for device in devices_of(profile):
        for place, role in device.lines:
            on_stream[trace.lines[place].events] = role is Role.STREAM and not device.is_tpu
    works = np.isin(activity_of(profile), (Activity.COMPUTE, Activity.COMMUNICATION))
    sets = np.array([*map(_MEMSET.match, trace.name.values), None]).astype(np.bool_)
    found: npt.NDArray[np.bool_] = on_stream & works & ~sets[trace.name.codes]
    return found


def _dim(text: str) -> Dim:
    sizes = [_unsigned(size) for size in text.strip("[]").split(",")]
    if len(sizes) != 3 or None in sizes:
        return (1, 1, 1)
    x, y, z = (size or 0 for size in sizes)
    return x, y, z


def _collect(made: list[tuple[Launch, float]], which: _Array, duration: _Array) -> Launches:
    """Launches that are equal but for what does not tell them apart are one."""
    distinct_launches: dict[Launch, float] = {}
    for launch, occupancy in made:
        distinct_launches.setdefault(launch, occupancy if math.isfinite(occupancy) else 0.0)
    number = {launch: place for place, launch in enumerate(distinct_launches)}
    place_of = np.array([number[launch] for launch, _ in made], np.int64)
    runs = place_of[which] if place_of.size else np.zeros(0, np.int64)
    return Launches(distinct_launches, runs, duration)
