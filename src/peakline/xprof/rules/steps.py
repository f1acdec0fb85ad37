"""The step database of XProf: how long steps took on every core, and what their time went to.

Base of the tools ``input_pipeline_analyzer``, ``overview_page`` and ``pod_viewer``::

    host = host_steps(profile, compatible=True)  # what one host knows; can be pickled
    database = combine_steps([("host", host)])

Sources of the rules: ``convert/step_events_to_steps_db.cc``, ``convert/op_stats_combiner.cc`` and
``utils/step_intersection.cc`` of openxla/xprof. Times are ps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from peakline.arrays import AnyArray
from peakline.kernels.step_spans import sweep
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import read_with_steps, trace_of
from peakline.xprof.rules.hardware import run_environment_of
from peakline.xprof.rules.step_events import (
    GPU_PREFIX,
    TPU_PREFIX,
    StepEvents,
    device_planes,
    step_events,
)
from peakline.xprof.rules.step_kinds import KINDS, SpanKind
from peakline.xprof.rules.step_model import (
    CORES_PER_HOST,
    CPU,
    GENERIC_CORE,
    GPU,
    TPU,
    Collective,
    CoreDetails,
    CoreStep,
    HostSteps,
    Step,
    StepDatabase,
)
from peakline.xprof.rules.tpu_steps import tpu_steps

_WHOLE_AT_MOST = 5
"""Of more steps XProf drops the first and the last, as if they were not whole."""


def host_steps(profile: Profile, *, compatible: bool, whole_only: bool = True) -> HostSteps:
    """The steps of one host. Made once per profile.

    With ``compatible`` exactly as XProf computes them; else with what it leaves out (see
    docs/differences/input_pipeline_analyzer.md). XProf drops the first and the last of more than
    five steps of hosts and GPUs, as if they were not whole; its pod viewer does not, which then is
    ``whole_only=False``. Raises InputError when the profile cannot be read.
    """
    result = _host_steps(profile, compatible)
    drops = compatible and whole_only and not _of_tpus(profile)
    if drops and len(result.steps) > _WHOLE_AT_MOST:
        return replace(result, steps=result.steps[1:-1])
    return result


def _of_tpus(profile: Profile) -> bool:
    devices = device_planes(profile)
    return bool(devices) and trace_of(profile).planes[devices[0]].name.startswith(TPU_PREFIX)


@once
def _host_steps(profile: Profile, compatible: bool) -> HostSteps:
    read_with_steps(profile)
    trace = trace_of(profile)
    devices = device_planes(profile)
    environment = run_environment_of(profile)
    hardware, device_type = environment.hardware, environment.device_type
    is_gpu = any(trace.planes[n].name.startswith(GPU_PREFIX) for n in devices)
    if profile.event_rules.planes is not None and hardware == GPU and not is_gpu:
        # Other devices of an XSpace are no GPUs, and have no steps.
        hardware, device_type = CPU, "CPU"
    events = step_events(profile, compatible=compatible)
    if _of_tpus(profile):
        steps, details = tpu_steps(profile, devices, events)
        return HostSteps(hardware, device_type, steps, details)
    steps, precision = _generic_steps(events, bool(devices), compatible)
    if not compatible:
        steps = _whole(profile, steps)
    return HostSteps(
        hardware, device_type, steps, {GENERIC_CORE: CoreDetails(profile.host)}, precision
    )


def _whole(profile: Profile, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that the record holds whole; all, where it holds none so."""
    if "steps" not in profile.tables:
        return steps
    table = profile.columns("steps")
    is_cut = table.array("is_cut_off") & table.is_valid("is_cut_off")
    cut_off = set(table.array("step_id")[is_cut].tolist())
    return tuple(step for step in steps if step.number not in cut_off) or steps


def _generic_steps(
    events: StepEvents, has_device: bool, compatible: bool
) -> tuple[tuple[Step, ...], tuple[int, int]]:
    begin, end = _windows(events, compatible)
    inside, whole, there = _swept(events, begin, end, compatible)
    duration = end - begin
    inside[:, SpanKind.UNKNOWN] += np.maximum(duration - inside.sum(axis=1), 0)
    counts = duration > 0
    if compatible and has_device:
        counts &= there[:, [SpanKind.DEVICE_COMPUTE_16, SpanKind.DEVICE_COMPUTE_32]].any(axis=1)
    elif compatible:
        counts &= there[:, SpanKind.HOST_COMPUTE]
    steps = []
    own_kinds, rows = list(SpanKind), np.flatnonzero(counts)
    columns = (events.groups.ids[rows], begin[rows], duration[rows], inside[rows][:, own_kinds])
    for row, number, first, length, times in zip(
        rows.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        kinds = {kind: time for kind, time in zip(own_kinds, times, strict=True) if time}
        core = CoreStep(first, length, events.names[row], kinds)
        steps.append(Step(number, {GENERIC_CORE: core}))
    spent = whole.sum(axis=0)
    precision = (int(spent[SpanKind.DEVICE_COMPUTE_16]), int(spent[SpanKind.DEVICE_COMPUTE_32]))
    return tuple(steps), precision


def _windows(events: StepEvents, compatible: bool) -> tuple[AnyArray, AnyArray]:
    """Begin and end of each step: upstream's, or those that also hold what the host did."""
    (host_begin, host_end), (begin, end) = events.host_marker, events.device_marker
    on_host, on_device = host_end > host_begin, end > begin
    if not compatible:
        return _own_windows(events)
    holds = (host_begin <= begin) & (host_end >= end)
    use_host = ~on_device | (on_host & holds)
    return np.where(use_host, host_begin, begin), np.where(use_host, host_end, end)


def _own_windows(events: StepEvents) -> tuple[AnyArray, AnyArray]:
    """From the marker's begin to its end, or the end of the device's work if that is later; never
    before the end of the step before.
    """
    (host_begin, host_end), (begin, end) = events.host_marker, events.device_marker
    on_host, on_device = host_end > host_begin, end > begin
    never = np.iinfo(np.int64).max
    starts = np.where(on_host, host_begin, np.where(on_device, begin, never))
    stops = np.maximum(np.where(on_host, host_end, -never), np.where(on_device, end, -never))
    there = on_host | on_device
    starts, stops = np.where(there, starts, 0), np.where(there, stops, 0)
    if on_device.any():
        rows = np.flatnonzero(there)
        rows = rows[np.argsort(starts[rows], kind="stable")]
        until = np.maximum.accumulate(stops[rows])
        starts[rows[1:]] = np.maximum(starts[rows[1:]], until[:-1])
        stops[rows] = np.maximum(stops[rows], starts[rows])
    return starts, stops


def _swept(
    events: StepEvents, begin: AnyArray, end: AnyArray, compatible: bool
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Per step and kind: the time in its window, all of it, and whether there is any."""
    kind, step, starts, stops = events.kind, events.step, events.begin, events.end
    if not compatible:
        # What has no length explains nothing.
        lasting = stops > starts
        kind, step, starts, stops = (part[lasting] for part in (kind, step, starts, stops))
    count = events.groups.ids.size
    inside, whole = (np.zeros((count, KINDS), np.int64) for _ in range(2))
    there = np.zeros((count, KINDS), np.bool_)
    if kind.size:
        is_start = np.repeat(np.array([True, False]), kind.size)
        kinds, rows = np.tile(kind, 2), np.tile(step.astype(np.int32), 2)
        times = np.concatenate([starts, stops])
        order = np.lexsort((is_start * np.uint8(KINDS) + (KINDS - 1 - kinds), times, rows))
        sweep(
            rows[order], times[order], kinds[order], is_start[order],
            begin, end, inside, whole, there, np.empty(KINDS, np.int64),
        )  # fmt: skip
    return inside, whole, there


def combine_steps(parts: Sequence[tuple[str, HostSteps]]) -> StepDatabase:
    """The database of ``[(host, what it contributes)]``.

    One host's is taken as it is. Of several, the one whose steps take the least time leads; the
    steps of every other are shifted against it by as many as make them overlap most, and those
    that all hosts have count, numbered from 0. Hosts without an accelerator have no say where
    another has one.
    """
    hosts = [part for _, part in parts]
    if len(hosts) == 1:
        return StepDatabase(hosts[0].hardware, hosts[0].steps, hosts[0].core_details)
    ranks = {CPU: 1, GPU: 2, TPU: 3}
    hardware = max((host.hardware for host in hosts), key=lambda name: ranks[name], default=CPU)
    accelerated = any(host.has_accelerator for host in hosts)
    workers = [n for n, host in enumerate(hosts) if host.has_accelerator or not accelerated]
    details = {
        _global_core(n, core): detail
        for n, host in enumerate(hosts)
        for core, detail in host.core_details.items()
    }
    first, count, empty = _common_steps([hosts[n].steps for n in workers])
    steps = []
    for number in range(count):
        cores: dict[int, CoreStep] = {}
        collectives: dict[int, Sequence[Collective]] = {}
        for at, n in zip(first, workers, strict=True):
            step = hosts[n].steps[at + number]
            cores |= {_global_core(n, core): own for core, own in step.cores.items()}
            collectives |= {_global_core(n, core): own for core, own in step.collectives.items()}
        steps.append(Step(number, cores, collectives))
    return StepDatabase(hardware, tuple(steps), details, empty)


def _global_core(host: int, core: int) -> int:
    return host * CORES_PER_HOST + core


def _common_steps(hosts: Sequence[Sequence[Step]]) -> tuple[list[int], int, bool]:
    """Where each host's common steps begin, how many there are, and whether there could be some."""
    spans = [[step.window for step in steps] for steps in hosts]
    lengths = []
    for windows in spans:
        lasting = [window for window in windows if window[1] > window[0]]
        length = max((e for _, e in lasting), default=0) - min((b for b, _ in lasting), default=0)
        lengths.append(length)
    if not spans:
        return [], 0, False
    chief = lengths.index(min(lengths))
    if not spans[chief]:
        return [0] * len(spans), 0, False
    offsets = [
        (0, 0, len(windows)) if n == chief else _aligned(windows, spans[chief])
        for n, windows in enumerate(spans)
    ]
    begin = max(at for _, at, _ in offsets)
    end = min(at + count for _, at, count in offsets)
    if begin > end:
        return [0] * len(spans), 0, True
    return [own + begin - at for own, at, _ in offsets], end - begin, False


def _aligned(
    windows: Sequence[tuple[int, int]], chief: Sequence[tuple[int, int]]
) -> tuple[int, int, int]:
    """First own step, first step of the chief, and how many both have."""
    if not windows:
        return 0, 0, 0
    overlap: dict[int, int] = {}
    own = lead = 0
    while own < len(windows) and lead < len(chief):
        (begin, end), (lead_begin, lead_end) = windows[own], chief[lead]
        if begin == end:
            own += 1
            continue
        if lead_begin == lead_end:
            lead += 1
            continue
        shared = max(min(end, lead_end) - max(begin, lead_begin), 0)
        overlap[lead - own] = overlap.get(lead - own, 0) + shared
        own, lead = own + (end <= lead_end), lead + (lead_end <= end)
    candidates = [*range(len(chief)), *range(-1, -len(windows), -1)]
    best = max(candidates, key=lambda offset: overlap.get(offset, 0))
    first, at = max(-best, 0), max(best, 0)
    return first, at, min(len(windows) - first, len(chief) - at)
