"""The ``trace_viewer@`` tool: the part of a trace that a viewer shows, by viewport and search.

The name, the parameters and the answer's form are XProf's. Sources (openxla/xprof,
``xprof/convert``): ``streaming_trace_viewer_processor.cc``, ``trace_view_options.cc``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from peakline import viewer
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.viewer.choose import Chosen
    from peakline.viewer.part import HostPart
    from peakline.viewer.view import View


class StreamingTraceParameters(Parameters):
    """The parameters; text is accepted for every value. Times are in ms on the file's clock."""

    start_time_ms: float = parameter(
        default=0.0, description="where the viewport begins, or with event_name the event"
    )
    end_time_ms: float = parameter(default=0.0, description="where it ends; 0: with the last event")
    resolution: float | None = parameter(
        default=None,
        ge=0,
        description="how many events side by side can be distinguished, such as the pixels of the "
        "width; 0: leave nothing out. Default: 8000 for 500,000 events or more, else 0",
    )
    search_prefix: str = parameter(
        default="", description="instead of a viewport all events whose name begins so"
    )
    search_metadata: bool = parameter(
        default=False, description="with search_prefix: their arguments too"
    )
    event_name: str = parameter(
        default="",
        description="instead all of one event: its name, with start_time_ms, duration_ms and "
        "unique_id",
    )
    duration_ms: float = parameter(default=0.0, description="with event_name: how long it took")
    unique_id: float = parameter(
        default=0, description="with event_name: the argument uid of the event in an answer"
    )
    full_dma: bool = parameter(default=False, description="TPU: the middle events of transfers too")
    derived_timeline: bool = parameter(
        default=True, description="devices: the lines made of what their events say"
    )
    raw_gpu_streams: bool = parameter(default=True, description="GPU: the lines of the streams")
    max_threads: int | None = parameter(
        default=None, ge=1, description="most threads of a process: those with most events"
    )
    links: bool | None = parameter(
        default=None,
        description="flows, steps and their names. Default: where nothing is left out for the "
        "resolution",
    )
    compatible: Literal["", "xprof"] = parameter(
        default="", description="xprof: the events that XProf shows, even where that is wrong"
    )


def part(profile: Profile, parameters: StreamingTraceParameters) -> HostPart:
    """The part of one host. Raises InputError when the profile cannot be read."""
    from peakline.viewer.choose import choose, find_prefix

    resolution = None if parameters.resolution is None else int(parameters.resolution)
    begin, end = parameters.start_time_ms, parameters.end_time_ms
    return part_of_view(
        viewer.whole_view(profile),
        parameters,
        find_prefix,
        lambda view: choose(view, begin, end, resolution),
    )


def part_of_view(
    view: View,
    parameters: StreamingTraceParameters,
    of_prefix: Callable[[View, str], Chosen],
    of_viewport: Callable[[View], Chosen],
) -> HostPart:
    """The chosen part of a view, found by ``of_prefix`` or ``of_viewport`` if it is no single
    event. Raises NotFoundError where there is no such event.
    """
    wanted = parameters
    if wanted.event_name:
        chosen = viewer.find_event(
            view, wanted.event_name, wanted.start_time_ms, wanted.duration_ms, int(wanted.unique_id)
        )
    elif wanted.search_prefix:
        chosen = of_prefix(view, wanted.search_prefix)
    else:
        chosen = of_viewport(view)
    result = viewer.part_of(
        view, chosen,
        with_links=not chosen.thinned if wanted.links is None else wanted.links,
        with_arguments=bool(wanted.event_name or (wanted.search_prefix and wanted.search_metadata)),
    )  # fmt: skip
    dropped = _dropped_threads(view.profile, view, wanted)
    return viewer.without(result, dropped) if dropped else result


def _dropped_threads(
    profile: Profile, view: View, parameters: StreamingTraceParameters
) -> set[tuple[int, int]]:
    """Process and number of the threads that are not wanted."""
    dropped: set[tuple[int, int]] = set()
    if not (parameters.derived_timeline and parameters.raw_gpu_streams):
        derived = viewer.derived_lines(profile)
        plane_of = {process.name: process.pid for process in view.processes}
        names = profile.columns("planes").names("name").to_list()
        made = {(plane_of.get(names[line.plane] or "", -1), line.tid) for line in derived.lines}
        if not parameters.derived_timeline:
            dropped |= made
        if not parameters.raw_gpu_streams:
            raw = set(derived.tids.values())
            dropped |= {
                (process.pid, tid)
                for process in view.processes
                if process.name.startswith("/device:GPU:")
                for tid in process.threads
                if tid in raw and (process.pid, tid) not in made
            }
    if parameters.max_threads is not None:
        sizes: dict[int, Counter[int]] = defaultdict(Counter)
        for track in view.tracks:
            if track.kind == viewer.COMPLETE and (track.pid, track.tid) not in dropped:
                sizes[track.pid][track.tid] += track.last - track.first
        for process in view.processes:
            own = sorted((-size, tid) for tid, size in sizes[process.pid].items())
            surplus = own[parameters.max_threads :]
            if surplus:
                profile.warn(
                    "threads_cut",
                    f"{process.name}: threads with fewer events, not shown",
                    len(surplus),
                )
            dropped |= {(process.pid, tid) for _, tid in surplus}
    return dropped


def together(
    parts: Sequence[tuple[str, HostPart]],
    parameters: StreamingTraceParameters,
    form: str,
    shown_ms: Callable[[float], str] = repr,
) -> bytes:
    """The answer of several hosts; ``shown_ms`` writes when all events begin and end."""
    hosts = [part for _, part in parts]
    details = [("mpmd_pipeline_view", False)]
    if any(part.is_tpu for part in hosts):
        details.append(("full_dma", parameters.full_dma))
    if form == "pb":
        return viewer.answer_pb(hosts, details)
    return viewer.answer_json(hosts, details, shown_ms)


TOOL = Tool(
    name="trace_viewer@",
    doc="The part of a trace that a viewer shows: by viewport, resolution and search.",
    parameters=StreamingTraceParameters,
    formats=("json", "pb"),
    shows=(("events",), ("op_runs",)),
    partial=part,
    combine=together,
    runtime_steps=True,
)
