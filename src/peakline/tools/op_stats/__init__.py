"""The ``op_stats`` tool: tfprof's views of a traced run, and its advice.

Equal to ``tf.compat.v1.profiler`` in every number; docs/op-stats.md says where it cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from peakline import tfprof
from peakline.errors import NotFoundError, PeaklineError, UsageError
from peakline.suggest import there_is
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tfprof import OpStats

__all__ = ["TOOL", "OpStatsParameters"]

_OPTIONS_OF_THE_TOOL = ("view", "select", "graph")
_NOTHING = "no_op_stats"
_BESIDE = ("graph.pb", "graph.pbtxt", "*graph.pb", "*graph.pbtxt", "*.meta")


def _known_columns(select: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in select if name not in tfprof.SELECTABLE]:
        raise ValueError(f"no column {unknown[0]!r}{there_is(unknown[0], tfprof.SELECTABLE)}")
    return select


def _minimum(of: str) -> int:
    """A parameter of the kind ``min_*``."""
    return parameter(0, ge=0, description=f"leave out what is below this: {of}")


class OpStatsParameters(Parameters):
    """The parameters, named as tfprof names its options; text is accepted for every value."""

    view: Literal["scope", "graph", "op", "code", "advise"] = parameter(
        "scope",
        description="scope: by name; graph: by data flow; op: by op type; code: by the Python "
        "lines that made the nodes; advise: what tfprof's checkers say",
    )
    order_by: Literal[
        "name",
        "bytes",
        "peak_bytes",
        "residual_bytes",
        "output_bytes",
        "micros",
        "accelerator_micros",
        "cpu_micros",
        "params",
        "float_ops",
        "occurrence",
    ] = parameter("name", description="the name, or the total that comes largest first")
    max_depth: int = parameter(2**31 - 1, ge=0, lt=2**31, description="levels shown below the root")
    min_bytes: int = _minimum("requested memory in total, in bytes")
    min_peak_bytes: int = _minimum("memory at its peak in total, in bytes")
    min_residual_bytes: int = _minimum("memory left after the run in total, in bytes")
    min_output_bytes: int = _minimum("memory of outputs in total, in bytes")
    min_micros: int = _minimum("execution time in total, in microseconds")
    min_accelerator_micros: int = _minimum("time on the accelerator in total, in microseconds")
    min_cpu_micros: int = _minimum("time on the CPU in total, in microseconds")
    min_params: int = _minimum("parameters")
    min_float_ops: int = _minimum("floating point operations")
    min_occurrence: int = _minimum("executions, in the view op nodes")
    step: int = parameter(-1, ge=-1, description="the step; -1: the average over all steps")
    account_type_regexes: tuple[str, ...] = parameter(
        (".*",), description="count only nodes of whose op type or device one matches"
    )
    start_name_regexes: tuple[str, ...] = parameter(
        (".*",), description="start at the names that match"
    )
    trim_name_regexes: tuple[str, ...] = parameter(
        (), description="leave out what is below names that match"
    )
    show_name_regexes: tuple[str, ...] = parameter(
        (".*",), description="show only names that match"
    )
    hide_name_regexes: tuple[str, ...] = parameter((), description="hide names that match")
    account_displayed_op_only: bool = parameter(
        default=False, description="totals add up only what is shown (not in the view code)"
    )
    select: tuple[str, ...] = parameter(
        ("bytes", "micros"),
        description="columns of the text: bytes, peak_bytes, residual_bytes, output_bytes, micros, "
        "accelerator_micros, cpu_micros, params, float_ops, device, op_types, occurrence, "
        "input_shapes",
        check=_known_columns,
    )
    graph: str | None = parameter(
        None,
        description="path of the graph that ran; default: the file's own, or one beside it "
        "(not in a session)",
        local_only=True,
    )


def _run(profile: Profile, parameters: OpStatsParameters, output_format: str) -> bytes:
    from peakline.tools.op_stats.output import view_json, view_proto
    from peakline.tools.op_stats.text import view_text

    given = parameters.but(*_OPTIONS_OF_THE_TOOL)
    for name, value in given.items():
        if isinstance(value, tuple):
            tfprof.check_patterns(name, value)
    options = tfprof.Options(**given)
    if not TOOL.may_support(frozenset(profile.tables)):
        return _nothing(profile, parameters, output_format)
    stats = _stats(profile, parameters.graph)
    if not stats.names:
        profile.warn(_NOTHING, "no executions and no nodes in this profile")
    if parameters.view in {"scope", "advise"}:
        profile.warn(
            "deep_scopes",
            f"names of more than {tfprof.DEEPEST_SCOPE} scopes: what is further inside is no row",
            tfprof.too_deep(stats),
        )
    if parameters.view == "advise":
        return _advice(stats, output_format)
    if output_format != "text" or "input_shapes" in parameters.select:
        stats.check_input_shapes()
    views = {
        "scope": tfprof.scope_view,
        "graph": tfprof.graph_view,
        "op": tfprof.op_view,
        "code": tfprof.code_view,
    }
    shown = views[parameters.view](stats, options)
    if shown is None:
        profile.warn("no_code_traces", "the graph does not say which Python lines made its nodes")
    if output_format == "text":
        return view_text(parameters.view, shown, parameters.select)
    return view_proto(shown) if output_format == "proto" else view_json(shown)


def _nothing(profile: Profile, parameters: OpStatsParameters, output_format: str) -> bytes:
    """The empty message of the view, after the parameters that name something were checked."""
    from peakline.tools.op_stats.output import view_json

    if parameters.step >= 0:
        raise NotFoundError(f"no step {parameters.step} in the profile; there is: none")
    if parameters.graph is not None:
        _named_graph(parameters.graph).close()
    profile.warn(_NOTHING, "neither a traced run nor a graph in this profile")
    return view_json(None) if output_format == "json" else b""


def _advice(stats: OpStats, output_format: str) -> bytes:
    from peakline.tools.op_stats.output import advice_json, advice_proto
    from peakline.tools.op_stats.text import advice_text

    writers = {"json": advice_json, "proto": advice_proto, "text": advice_text}
    return writers[output_format](tfprof.advise(stats))


def _stats(profile: Profile, graph: str | None) -> OpStats:
    other = _graph_profile(profile, graph)
    if other is None:
        stats = tfprof.read_op_stats(profile)
    else:
        with other:
            stats = tfprof.read_op_stats(profile, other)
            for warning in other.warnings:
                profile.warn(warning.kind, f"{other.path}: {warning.detail}", warning.count)
    if stats.costs is not None and stats.costs.lacks_streams:
        profile.warn(
            "no_accelerator_time",
            "ops ran on an accelerator, but the trace has no times of the accelerator itself",
        )
    return stats


def _graph_profile(profile: Profile, path: str | None) -> Profile | None:
    """The graph named by ``path`` or found beside the profile; None for the profile's own."""
    if path is not None:
        return _named_graph(path)
    if profile.is_alone or _has_full_graph(profile):
        return None
    for candidate in _beside(profile.path):
        try:
            result = _open_graph(candidate)
        except PeaklineError as error:
            profile.warn("graph_unreadable", str(error))
            continue
        if result is not None:
            return result
    return None


def _named_graph(path: str) -> Profile:
    result = _open_graph(path)
    if result is None:
        raise UsageError(f"{path}: no graph in it")
    return result


def _open_graph(path: str) -> Profile | None:
    from peakline.formats import open_reader
    from peakline.tables import Profile

    profile = Profile(open_reader(path))
    if _has_full_graph(profile):
        return profile
    profile.close()
    return None


def _has_full_graph(profile: Profile) -> bool:
    if "graphs" not in profile.tables:
        return False
    return any(
        kind in tfprof.FULL_GRAPHS for kind in profile.columns("graphs").names("kind").values
    )


def _beside(path: str) -> Iterable[str]:
    """Files beside a local one that are called as graphs are, the likeliest first."""
    file = Path(path)
    if not file.is_file():
        return []
    result = [str(other) for name in _BESIDE for other in sorted(file.parent.glob(name))]
    return [other for other in dict.fromkeys(result) if Path(other) != file]


def _has_own(profile: Profile) -> bool:
    """Whether there are ops of a framework: the nodes of compiled programs are none."""
    return profile.programs() is None or profile.has_rows("op_runs")


TOOL = Tool(
    name="op_stats",
    doc="What ops cost by name, data flow, type or source line, and advice (tfprof).",
    parameters=OpStatsParameters,
    formats=("json", "proto", "text"),
    shows=(("nodes",), ("op_runs", "op_times")),
    looks=_has_own,
    run=_run,
)
