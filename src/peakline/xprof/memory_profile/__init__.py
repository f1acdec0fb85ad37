"""The ``memory_profile`` tool: allocators' timelines and what was live at each one's peak.

Equal to XProf's tool of the same name (openxla/xprof) field by field. An XSpace without host
threads has no memory profile at all: the answer is then 0 bytes, as upstream's. Any other file
without memory events gets an empty message.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from peakline.errors import NotFoundError
from peakline.suggest import there_is
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.memory_profile.output import Report, Reports

__all__ = ["TOOL", "MemoryProfileParameters"]

_TABLE = "memory_snapshots"
_EMPTY = "no_memory_events"


class MemoryProfileParameters(Parameters):
    """The parameters; text is accepted for numbers."""

    host: str | None = parameter(None, description="the host, where a session has several")
    memory_id: str | None = parameter(None, description="only this allocator or memory")
    max_snapshots: int = parameter(
        1000, ge=1, description="most snapshots of the sampled timeline (version 1)"
    )
    version: int = parameter(
        1,
        ge=0,
        le=1,
        description="1: snapshots of the peak's table and a sampled timeline; "
        "0: all snapshots in time order",
    )


def _partial(profile: Profile, parameters: MemoryProfileParameters) -> Report | None:
    """What to write about one host; None where records of memory are of no host's threads."""
    if _TABLE not in profile.tables and "allocator_events" in profile.tables:
        _check_memory_id(parameters.memory_id, [])
        profile.warn(_EMPTY, "the profile has no host threads, so no memory events")
        return None
    # Compiling and loading the rules takes a moment: only when there is something to do.
    from peakline.xprof.memory_profile.output import make_report
    from peakline.xprof.memory_profile.rules import MOST_MEMORIES, allocator_profiles, memory_ids

    snapshots = profile.columns_or_empty(_TABLE)
    known = memory_ids(snapshots)
    _check_memory_id(parameters.memory_id, known)
    if parameters.memory_id is None and len(known) > MOST_MEMORIES:
        text = f"memories beyond the first {MOST_MEMORIES:,}; the parameter memory_id names one"
        profile.warn("memories_left_out", text, len(known) - MOST_MEMORIES)
    if snapshots.rows == 0:
        profile.warn(_EMPTY, "the file has no memory events")
    # Without free bytes the sum at the peak is only the peak.
    without: Collection[str] = ()
    if profile.is_derived(_TABLE):
        events = profile.columns("allocator_events")
        says = events.is_valid("free_bytes") | events.is_valid("capacity_bytes")
        allocator = events.names("allocator")
        with_capacity = np.unique(allocator.codes[says]).tolist()
        without = set(known).difference(allocator.values[code] for code in with_capacity)
    return make_report(
        snapshots,
        allocator_profiles(snapshots, parameters.memory_id),
        profile.columns("module_runs") if "module_runs" in profile.tables else None,
        parameters.version,
        parameters.max_snapshots,
        without_capacity=without,
    )


def _check_memory_id(wanted: str | None, known: list[str]) -> None:
    if wanted is not None and wanted not in known:
        raise NotFoundError(f"no memory {wanted!r} in the profile{there_is(wanted, known)}")


def _run(profile: Profile, parameters: MemoryProfileParameters, output_format: str) -> bytes:
    report = _partial(profile, parameters)
    return b"" if report is None else _written([("", report)], 1, output_format)


def _combine(
    parts: Sequence[tuple[str, Report | None]],
    _parameters: MemoryProfileParameters,
    output_format: str,
) -> bytes:
    reports = [(f"{host}/", report) for host, report in parts if report is not None]
    return _written(reports, len(parts), output_format) if reports else b""


def _written(reports: Reports, hosts: int, output_format: str) -> bytes:
    from peakline.xprof.memory_profile.output import to_json, to_proto

    return to_proto(reports, hosts) if output_format == "proto" else to_json(reports, hosts)


TOOL = Tool(
    name="memory_profile",
    doc="Timeline of each allocator and the allocations live at its peak (MemoryProfile).",
    parameters=MemoryProfileParameters,
    formats=("json", "proto"),
    shows=((_TABLE,),),
    run=_run,
    partial=_partial,
    combine=_combine,
)
