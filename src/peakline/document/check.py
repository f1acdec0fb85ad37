"""What is said of a check: which limits pass, and what is behind those that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from peakline.check.baseline import write_baseline
from peakline.check.programs import write_programs
from peakline.check.question import Question
from peakline.check.ranks import RankChecks, worst_checks
from peakline.check.time import TimeState
from peakline.check.verdict import Check
from peakline.compare.rows import signed_size
from peakline.compare.state import AllocatorState, MemoryState
from peakline.document.diff import WHAT, what_cells
from peakline.document.job_members import job_part, warnings_of
from peakline.document.model import Column, Table, Value, columns_of, value_of
from peakline.document.profile import answer_document
from peakline.jobs.members import Job, Member
from peakline.tables import Profile
from peakline.text import allocator_text, counted

_ROWS = 8
_AGAINST = " against the baseline"
_BEHIND = {
    "peak": "largest at the peak",
    "growth per step": "what every step leaves",
    "peak against the baseline": "what grew at the peak since the baseline",
    "growth per step against the baseline": "what every step leaves more of",
    "program peak": "largest when the program needs most",
    "program peak against the baseline": "what grew since the baseline",
}
_GOES = "where the mean step's time goes"
"""What is behind a limit on time."""
_COLUMNS = {
    "delta_bytes": Column("change", "signed"),
    "bytes": Column("size", "bytes"),
    "bytes_per_step": Column("per step", "bytes"),
    "count": Column("count", "count"),
    "before_bytes": Column("baseline", "bytes"),
    "after_bytes": Column("now", "bytes"),
    "before_bytes_per_step": Column("baseline", "bytes"),
    "after_bytes_per_step": Column("now", "bytes"),
    "op": Column("op", "name"),
    "region_type": Column("region", "form"),
    "data_type": Column("type", "form"),
    "shape": Column("shape", "form"),
    "part": Column("", "name"),
    "per_step_ps": Column("per step", "ps"),
    "share": Column("share", "share"),
    "what": Column("what happened", "remark"),
}
"""In the order of the screen."""


def outcome(checks: Sequence[Check]) -> str:
    """All checks in one line."""
    if not checks:
        return "nothing to compare with"
    limits, failed = counted(len(checks), "limit"), sum(not check.passed for check in checks)
    return f"{failed} of {limits} failed" if failed else f"{limits} passed"


def checks_table(checks: Sequence[Check], names: Mapping[str, str]) -> Table:
    """Every check; ``names`` are those of the allocators on screens."""
    others = any(one.is_of_program or one.is_of_time or one.rank for one in checks)
    of = "of" if others else "allocator"
    bases, runs = _bases(checks)
    columns = (
        *columns_of(result="", limit="", **{of: "name"}, measured="figure", allowed="figure"),
        Column(f"baseline{runs}"),
    )
    rows = [
        (
            one.verdict,
            one.name.removesuffix(_AGAINST),
            name_of(one, names),
            one.measured_text,
            one.limit_text,
            base,
        )
        for one, base in zip(checks, bases, strict=True)
    ]
    return Table("checks", columns, rows).without_empty()


def _bases(checks: Sequence[Check]) -> tuple[list[str], str]:
    """What the baseline has for each check, empty where it is not compared with one; and of how
    many runs that is, where all are of as many.
    """
    bases = [one.base or ("not known" if one.name.endswith(_AGAINST) else "") for one in checks]
    parts = [base.partition(" (") for base in bases]
    counts = {end.rstrip(")") for _, _, end in parts if end}
    if len(counts) != 1:
        return bases, ""
    (count,) = counts
    return [base for base, _, _ in parts], "" if count == "1 run" else f" of {count}"


def name_of(check: Check, names: Mapping[str, str]) -> str:
    """The rank of a check, where it is of one, and the allocator, the program, or the steps."""
    return " ".join(filter(None, (check.rank, _object_of(check, names))))


def _object_of(check: Check, names: Mapping[str, str]) -> str:
    if check.is_of_time:
        return "steps"
    if check.measured is None and not check.allocator and not check.is_of_program:
        return "(no allocator)"
    if check.is_of_program:
        return check.program or "(no program)"
    return allocator_text(names.get(check.allocator, check.allocator))


def behind(check: Check) -> Table:
    """The rows behind a limit that failed; none where nothing is known of it."""
    names = [name for name in _COLUMNS if check.rows and name in check.rows[0]]
    rows = [[_cell(name, row[name]) for name in names] for row in check.rows]
    title = _GOES if check.is_of_time else _BEHIND.get(check.name, check.name)
    return Table(title, [_COLUMNS[name] for name in names], rows)


def _cell(name: str, value: object) -> Value:
    if name == "delta_bytes" and isinstance(value, int | float):
        return signed_size(value)
    empty = {"op": "(no op)", "count": ""}.get(name)
    return value_of(value) if value or empty is None else empty


def largest(state: AllocatorState) -> Table:
    """What is largest at an allocator's peak."""
    rows = [
        (
            group.bytes,
            group.bytes / state.peak_bytes if state.peak_bytes else "",
            group.count or "",
            *what_cells(group.kind),
        )
        for group in state.groups[:_ROWS]
    ]
    columns = columns_of("size", "share", "count", **WHAT)
    return Table("largest at the peak", columns, rows)


def job_check_document(
    job: Job, ranks: Sequence[tuple[Member, RankChecks]], question: Question | None = None
) -> dict[str, object]:
    """What ``peakline check --json`` prints of a job."""
    worst = worst_checks(ranks)
    origins = {} if question is None else question.origins
    return {
        "job": job_part(job),
        "passed": all(one.passed for one in worst),
        "checks": [one.as_json() for one in worst],
        "ranks": [
            {
                "rank": member.number,
                "title": member.title,
                "host": member.host,
                "path": member.profile.path,
                "passed": all(one.passed for one in checks),
                "checks": [replace(one, rows=(), rank=member.title).as_json() for one in checks],
            }
            for member, checks in ranks
        ],
        "limits_from": limits_from(origins),
        "warnings": warnings_of(job),
    }


def limits_from(origins: Mapping[str, Path | None]) -> dict[str, str]:
    """Where each limit was set."""
    return {
        key: "command line" if origin is None else str(origin) for key, origin in origins.items()
    }


def check_document(
    profile: Profile,
    question: Question,
    checks: Sequence[Check],
    state: MemoryState,
    time: TimeState,
) -> dict[str, object]:
    """What ``peakline check --json`` prints; also a baseline of one run."""
    return answer_document(
        profile,
        {
            "passed": all(one.passed for one in checks),
            "checks": [one.as_json() for one in checks],
            "allocators": write_baseline(state),
            "programs": write_programs(state.programs),
            "time": None if time.step_ps is None else time.as_json(),
            "limits_from": limits_from(question.origins),
        },
    )
