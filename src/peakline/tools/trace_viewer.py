"""The ``trace_viewer`` tool: the profile as a Chrome trace, for any viewer that reads it.

A profile with executions of ops (StepStats) gives exactly what TensorFlow's own timeline gives;
every other one gives the shape of XProf's tool of the same name, with all its events. A profile
without any gives an empty trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from peakline import viewer
from peakline.errors import NotFoundError
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.viewer.view import View

_NO_EVENTS = "no_events"
_EMPTY_TRACE = b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{}]}\n'


class TraceViewerParameters(Parameters):
    """The parameters; text is accepted for every value."""

    show_dataflow: bool = parameter(
        default=True, description="StepStats: arrows from producers to consumers"
    )
    show_memory: bool = parameter(
        default=False, description="tensors and allocators (StepStats), or memory in use"
    )
    op_time: Literal["schedule", "gpu", "all"] = parameter(
        "schedule", description="StepStats: time in the executor, of the kernels, or both together"
    )
    step: str | None = parameter(
        None, description="StepStats: the step's id or name. Default: the last one"
    )
    show_args: bool = parameter(
        default=True, description="other profiles: the stats of every event"
    )
    compatible: Literal["", "xprof"] = parameter(
        default="", description="xprof: the events that XProf shows, even where that is wrong"
    )


def run(profile: Profile, parameters: TraceViewerParameters, form: str) -> bytes:
    """The trace as JSON or, for ``pb``, compact; raises NotFoundError for an unknown step."""
    if form == "pb":
        return compact(viewer.whole_view(profile))
    if not TOOL.may_support(frozenset(profile.tables)):
        if parameters.step is not None:
            raise _no_step(parameters.step, "")
        profile.warn(_NO_EVENTS, "no events in this profile")
        return _EMPTY_TRACE
    if "op_runs" not in profile.tables:
        content = viewer.trace_events(
            profile, show_args=parameters.show_args, show_memory=parameters.show_memory
        )
        if profile.columns("events").rows == 0:
            profile.warn(_NO_EVENTS, "no events in this profile")
        return content
    from peakline.viewer.step_timeline import Executions, step_timeline

    executions = Executions.of_step(
        profile.columns("op_devices"),
        profile.columns("op_runs", frozenset(("op_run_id", "name", "label", "device_entry"))),
        profile.columns("op_times", frozenset(("all_start_micros", "all_end_rel_micros"))),
        profile.columns("op_outputs"),
        _step(profile, parameters.step),
    )
    if executions.start.size == 0:
        profile.warn(_NO_EVENTS, "no executions in this profile")
    return step_timeline(
        executions,
        show_dataflow=parameters.show_dataflow,
        show_memory=parameters.show_memory,
        op_time=parameters.op_time,
    )


def compact(view: View) -> bytes:
    """All events of a view in the form of ``trace_viewer@``, without serial numbers."""
    part = viewer.part_of(view, viewer.all_of(view), with_links=True, with_arguments=False)
    if not part.start.size:
        view.profile.warn(_NO_EVENTS, "no events in this profile")
    return viewer.answer_pb([part], [], numbers_hosts=False)


def _step(profile: Profile, wanted: str | None) -> int | None:
    """The id of the step to show; None when the profile knows no steps."""
    steps = profile.columns("steps")
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    if wanted is None:
        return ids[-1] if ids else None
    for number, name in zip(ids, names, strict=True):
        if wanted in {str(number), name}:
            return int(number)
    known = ", ".join(f"{number} ({name})" for number, name in zip(ids, names, strict=True))
    raise _no_step(wanted, known)


def _no_step(wanted: str, known: str) -> NotFoundError:
    return NotFoundError(f"no step {wanted!r} in the profile; there is: {known or 'none'}")


TOOL = Tool(
    name="trace_viewer",
    doc="The profile as a Chrome trace (JSON), or compact.",
    parameters=TraceViewerParameters,
    formats=("json", "pb"),
    shows=(("op_runs",), ("events",)),
    run=run,
    runtime_steps=True,
)
