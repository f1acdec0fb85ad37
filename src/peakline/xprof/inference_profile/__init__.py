"""The ``inference_profile`` tool: how long requests to a model server took, and what on.

The tables of XProf's tool of the same name (openxla/xprof): models, and of each its requests and
batches by percentile, with means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from peakline.toolbox.parameters import XprofParameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import tables_csv, tables_json
from peakline.xprof.inference_profile.names import SERVER, SHOWN

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.inference_profile.requests import Served

__all__ = ["TOOL", "InferenceProfileParameters"]


class InferenceProfileParameters(XprofParameters):
    """The parameters; text is accepted for every value."""

    request_column: Literal[
        "", "Latency", "Request delay for batching", "Request size", "Host preprocess",
        "Host batch formation", "Host runtime", "Data transfer H2D", "Data transfer D2H",
        "Device compute", "Host postprocess", "Idle time",
    ] = parameter("", description="the order of requests; default: by latency")  # fmt: skip
    batch_column: Literal[
        "", "Latency", "Batching delay", "Padding amount", "Batch size after padding",
        "Batching efficiency",
    ] = parameter("", description="the order of batches; default: by latency")  # fmt: skip


def _partial(profile: Profile, parameters: InferenceProfileParameters) -> Served:
    from peakline.xprof.inference_profile.requests import served_by

    return served_by(profile, compatible=bool(parameters.compatible))


def _combine(
    parts: Sequence[tuple[str, Served]], parameters: InferenceProfileParameters, output_format: str
) -> bytes:
    from peakline.xprof.inference_profile.tables import inference_tables

    tables = inference_tables(
        [part for _, part in parts],
        request_column=parameters.request_column,
        batch_column=parameters.batch_column,
        compatible=bool(parameters.compatible),
    )
    return tables_csv(tables[0]) if output_format == "csv" else tables_json(*tables)


def _serves(profile: Profile) -> bool:
    """Whether events are those of a server: only the names of kinds of events are looked at."""
    if "event_types" not in profile.tables or profile.event_rules.planes is None:
        return False
    names = profile.columns("event_types", frozenset(("name",))).names("name").values
    return any(name in SHOWN or name.startswith(SERVER) for name in names)


TOOL = Tool(
    name="inference_profile",
    doc="How long requests to a model server took, what they waited for, and their batches.",
    parameters=InferenceProfileParameters,
    formats=("json", "csv"),
    shows=(("events",),),
    looks=_serves,
    marks=(*sorted(SHOWN), SERVER),
    partial=_partial,
    combine=_combine,
    runtime_steps=True,
)
