"""The ``pod_viewer`` tool: what the time of every step went to on every core of every host.

The answer is XProf's ``PodViewerDatabase`` (``plugin/xprof/protobuf/pod_viewer.proto`` of
openxla/xprof) in proto JSON, zero fields printed. Source of the rules:
``convert/op_stats_to_pod_stats.cc``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.step_model import CoreDetails, CoreStep, HostSteps, Step, StepDatabase

    _Part = tuple[HostSteps, int | None]

_EVENTS = (
    "Device compute", "Device to device", "Device collective communication", "Host compute",
    "Kernel launch", "Input", "Output", "Compilation", "All others",
)  # fmt: skip
"""What time is divided into, by its number from 1 on."""
_COMPUTE, _TO_DEVICE, _COLLECTIVES, _HOST, _LAUNCH, _INPUT, _OUTPUT, _COMPILE, _OTHERS = range(
    1, 10
)
_COLLECTIVE_WORDS = (
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective",
)  # fmt: skip
_TRANSFER_WORDS = ("send", "recv", "host send", "host recv")


class PodViewerParameters(Parameters):
    """The parameters; text is accepted for every value."""

    compatible: Literal["", "xprof"] = parameter(
        "", description="xprof: exactly XProf's numbers; default: also what it leaves out"
    )


def _partial(profile: Profile, parameters: PodViewerParameters) -> _Part:
    """What one host gives: its steps, and when its clock was zero (ns since 1970)."""
    # Unlike its other tools, XProf's pod viewer shows the first and the last step too.
    steps = rules.host_steps(profile, compatible=bool(parameters.compatible), whole_only=False)
    return steps, profile.start_ns


def _combine(
    parts: Sequence[tuple[str, _Part]], parameters: PodViewerParameters, _format: str
) -> bytes:
    compatible = bool(parameters.compatible)
    hosts = [(host, steps) for host, (steps, _) in parts]
    if not compatible:
        hosts = _on_one_axis(parts)
    database = rules.combine_steps(hosts)
    steps = [_step(step, database, compatible=compatible) for step in database.steps]
    document = {
        "podStatsSequence": {"podStatsMap": steps},
        "diagnostics": {"info": [], "warnings": rules.step_warnings(database), "errors": []},
        "stepBreakdownEvents": [
            {"id": number, "name": name} for number, name in enumerate(_EVENTS, 1)
        ],
        "deviceType": _device_type([steps.device_type for _, (steps, _) in parts]),
    }
    return compact_json(document, ascii_only=False)


def _on_one_axis(parts: Sequence[tuple[str, _Part]]) -> list[tuple[str, HostSteps]]:
    """The hosts' steps with their windows on one clock, where every host has its own.

    XProf compares them as if all profiles had begun at the same moment.
    """
    starts = [start for _, (_, start) in parts]
    known = [start for start in starts if start is not None]
    if len(known) < len(starts) or len(starts) == 1:
        return [(host, steps) for host, (steps, _) in parts]
    return [
        (host, _moved(steps, (start - min(known)) * 1000))
        for (host, (steps, _)), start in zip(parts, known, strict=True)
    ]


def _moved(host: HostSteps, ps: int) -> HostSteps:
    steps = tuple(
        replace(
            step,
            cores={
                number: replace(core, begin_ps=core.begin_ps + ps)
                for number, core in step.cores.items()
            },
        )
        for step in host.steps
    )
    return replace(host, steps=steps)


def _device_type(hosts: Sequence[str]) -> str:
    """That of the last host with an accelerator; one without counts where none was known before."""
    result = ""
    for name in hosts:
        if name not in {"CPU", "Device"} or not result:
            result = name
    return result


def _step(step: Step, database: StepDatabase, *, compatible: bool) -> dict[str, object]:
    cores = {
        str(number): _record(step.number, core, database.core_details[number], compatible)
        for number, core in sorted(step.cores.items())
        if number in database.core_details
    }
    return {
        "stepNum": step.number,
        "podStatsPerCore": cores,
        "channelDb": [],
        "coreIdToReplicaIdMap": {},
        "allReduceOpDb": [],
    }


def _record(
    number: int, core: CoreStep, details: CoreDetails, compatible: bool
) -> dict[str, object]:
    spent = _spent(core, compatible)
    most = max(spent, key=lambda event: (spent[event], _EVENTS[event - 1]))
    return {
        "hostName": details.host,
        # Profiles do not have these.
        "chipId": 0,
        "nodeId": 0,
        "stepNum": number,
        "totalDurationUs": _micros(core.duration_ps),
        "bottleneck": _EVENTS[most - 1],
        "stepBreakdownUs": {str(event): _micros(ps) for event, ps in spent.items()},
    }


def _spent(core: CoreStep, compatible: bool) -> dict[int, int]:
    """The time per number of `_EVENTS`, in ps."""
    spent = dict.fromkeys(range(1, len(_EVENTS) + 1), 0)
    event_of: Mapping[Any, int] = {
        rules.SpanKind.DEVICE_COMPUTE_32: _COMPUTE,
        rules.SpanKind.DEVICE_COMPUTE_16: _COMPUTE,
        rules.SpanKind.DEVICE_TO_DEVICE: _TO_DEVICE,
        rules.SpanKind.DEVICE_COLLECTIVES: _COLLECTIVES,
        rules.SpanKind.HOST_COMPUTE: _HOST,
        rules.SpanKind.HOST_PREPARE: _LAUNCH,
        rules.SpanKind.HOST_WAIT_INPUT: _INPUT,
        rules.SpanKind.HOST_TO_DEVICE: _INPUT,
        rules.SpanKind.DEVICE_TO_HOST: _OUTPUT,
        rules.SpanKind.UNKNOWN: _OTHERS,
    }
    for kind, ps in core.kinds.items():
        if kind in event_of:
            spent[event_of[kind]] += ps
        elif not compatible:
            # Copies within the host, which XProf's parts of a step leave out.
            spent[_HOST] += ps
    if not compatible:
        # XProf looks only at what hosts and GPUs have, and shows a TPU's steps as empty.
        for category, ps in core.categories.items():
            spent[_of_category(category)] += ps
    return spent


def _of_category(category: str) -> int:
    """What an HLO category of a TPU's op is shown as."""
    if category == "IDLE":
        return _OTHERS
    if category.endswith("infeed"):
        return _INPUT
    if category.endswith("outfeed"):
        return _OUTPUT
    if any(word in category for word in _COLLECTIVE_WORDS):
        return _COLLECTIVES
    if category.removesuffix("-done").removesuffix(" done") in _TRANSFER_WORDS:
        return _TO_DEVICE
    return _COMPUTE


def _micros(ps: int) -> float | int:
    """Microseconds as proto JSON prints them: whole ones without a point."""
    value = ps / 1e6
    return int(value) if value.is_integer() else value


TOOL = Tool(
    name="pod_viewer",
    doc="What the time of every step went to, on every core of every host.",
    parameters=PodViewerParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
