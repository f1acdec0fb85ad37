"""The ``step_breakdown`` tool: what the time of every step went to, of one host or of all.

One host's rows are the table ``step_breakdown``. Those of several have their ``host``, and their
times are on one axis (`peakline.trace.clocks`), which the answer describes, as it does
how much the steps differ and which host the others wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from peakline import document, findings, jobs, timing, trace
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv

if TYPE_CHECKING:
    from peakline.jobs.contribution import Contribution
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.trace.clocks import HostClock


class StepBreakdownParameters(Parameters):
    """The parameters; text is accepted for every value."""

    align: bool = parameter(
        default=True,
        description="several hosts: times on one axis; false: each on the clock of its host",
    )
    limit: int | None = parameter(
        None, ge=0, le=1 << 40, description="at most so many rows, the first. Default: all"
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """What one host gives."""

    times: StepTimes
    variation: list[dict[str, Any]]
    clock: HostClock
    contribution: Contribution


def _times(profile: Profile) -> StepTimes:
    times = timing.step_times(profile)
    if not times.rows:
        profile.warn(findings.NO_STEPS, findings.UNMARKED, once=True)
    return times


def _partial(profile: Profile, _parameters: StepBreakdownParameters) -> _Part:
    return _Part(
        _times(profile), _variation(profile), trace.clock_of(profile), jobs.time_of(profile)
    )


def _combine(
    parts: Sequence[tuple[str, _Part]], parameters: StepBreakdownParameters, output_format: str
) -> bytes:
    alignment = trace.align([replace(part.clock, host=host) for host, part in parts])
    columns: dict[str, list[Any]] = {"host": []}
    variation, devices = [], []
    for host, part in parts:
        placed = alignment.of(host)
        own = _columns(part.times, placed.offset_ps if parameters.align else 0)
        columns["host"] += [host] * part.times.rows
        for name, values in own.items():
            columns.setdefault(name, []).extend(values)
        variation += [{"host": host} | result for result in part.variation]
        straggler = _device_straggler(part.times)
        devices += [] if straggler is None else [{"host": host} | straggler]
    columns = _first(columns, parameters.limit)
    if output_format == "csv":
        return quoted_csv(columns, zip(*columns.values(), strict=True))
    answer = jobs.answer_of([(host, part.contribution) for host, part in parts])
    return compact_json(
        {
            "steps": _objects(columns),
            "variation": variation,
            **document.waited_for(answer),
            "device_stragglers": devices,
            "clocks": alignment.as_json(),
        }
    )


def _run(profile: Profile, parameters: StepBreakdownParameters, output_format: str) -> bytes:
    times = _times(profile)
    columns = _first(_columns(times, 0), parameters.limit)
    if output_format == "csv":
        return quoted_csv(columns, zip(*columns.values(), strict=True))
    return compact_json(
        {
            "number_of_steps": timing.step_facts_of(profile).number_of_steps,
            "steps": _objects(columns),
            "variation": _variation(profile),
            "straggler": _device_straggler(times),
        }
    )


def _columns(times: StepTimes, offset_ps: int) -> dict[str, list[Any]]:
    """The table ``step_breakdown``, with ``offset_ps`` added to its moments."""
    table = times.columns()
    moments = {name: (table.array(name) + offset_ps).tolist() for name in ("start_ps", "end_ps")}
    return table.lists() | moments


def _first(columns: dict[str, list[Any]], limit: int | None) -> dict[str, list[Any]]:
    return columns if limit is None else {name: own[:limit] for name, own in columns.items()}


def _variation(profile: Profile) -> list[dict[str, Any]]:
    return [asdict(result) for result in timing.variation_of(timing.step_facts_of(profile))]


def _device_straggler(times: StepTimes) -> dict[str, Any] | None:
    result = timing.device_straggler(times)
    return None if result is None else asdict(result)


def _objects(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


TOOL = Tool(
    name="step_breakdown",
    doc="What the time of every step went to, of one host or of all on one axis.",
    parameters=StepBreakdownParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    run=_run,
    partial=_partial,
    combine=_combine,
)
