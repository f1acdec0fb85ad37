"""What compiled programs need against a limit, and against the programs of a baseline.

A program needs the same in every run, so no noise is allowed for but the baseline's tolerance. What
needs less than `_MINOR` of the largest program of the baseline may grow up to that: it is not what
a device runs out of memory for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from peakline.check.allowance import Allowance
from peakline.check.units import BYTES, Unit
from peakline.check.verdict import ROWS, Check, Limits, held, unmeasured
from peakline.compare.programs import ProgramDiff, compare_programs
from peakline.compare.state import MemoryState, ProgramState
from peakline.text import counted, size_text

if TYPE_CHECKING:
    from peakline.tables import Profile


Place = tuple[str, int]
"""A file, from the working directory where it lies below it, and a line from 1."""


def places_of(profile: Profile, checks: Sequence[Check]) -> list[Place | None]:
    """A place for each check; None where the profile knows none. Only failed ones are searched."""
    wanted = {check.program for check in checks if check.is_of_program and not check.passed}
    known = _program_places(profile, wanted - {""}) if wanted - {""} else {}
    return [None if check.passed else known.get(check.program) for check in checks]


def _program_places(profile: Profile, labels: set[str]) -> dict[str, Place]:
    from peakline.timing.programs.answer import ProgramAnswer

    result: dict[str, Place] = {}
    for number in range(len(profile.programs() or ())):
        answer = ProgramAnswer(profile, number)
        if answer.label not in labels:
            continue
        lines: dict[tuple[str, int], int] = {}
        for value in answer.live:
            if value.source_file and value.source_line:
                line = (value.source_file, value.source_line)
                lines[line] = lines.get(line, 0) + value.bytes
        if lines:
            file, line_number = max(lines, key=lambda line: lines[line])
            result[answer.label] = (near(file), line_number)
    return result


def near(file: str) -> str:
    """``file`` as seen from the working directory: below it, or where its last parts are there too
    (the program ran on another machine, from another place). Any other as it is.
    """
    here, path = Path.cwd(), Path(file)
    if path.is_absolute() and path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    parts = PurePosixPath(file.replace("\\", "/")).parts
    for count in range(1, len(parts)):
        rest = Path(*parts[count:])
        if ".." not in rest.parts and (here / rest).is_file():
            return rest.as_posix()
    return file


_LIMIT, _BASELINE = "program peak", "program peak against the baseline"
_MINOR = 0.01


def program_limit(state: MemoryState, limits: Limits) -> list[Check]:
    """The program that needs most against the limit; none without a limit."""
    limit = limits.max_program_peak_bytes
    if limit is None:
        return []
    return [replace(_limit(state, limit, limits.unit_of(_LIMIT)), unit=limits.unit_of(_LIMIT))]


def _limit(state: MemoryState, limit: int, unit: Unit) -> Check:
    if not state.programs:
        return unmeasured(_LIMIT, "", limit, state.no_programs)
    largest = _largest(state.programs)
    silent = [one for one in state.programs if one.peak_bytes is None]
    if largest is None or (silent and (largest.peak_bytes or 0) <= limit):
        count = f"{len(silent):,} of {counted(len(state.programs), 'program')}"
        have = "has" if len(silent) == 1 else "have"
        why = f"{count} {have} no buffer assignment, {silent[0].label} first"
        return unmeasured(_LIMIT, "", limit, why)
    peak = largest.peak_bytes or 0
    need, most = unit.pair(peak, limit)
    reason = f"{need} needed, {most} allowed"
    if peak > limit and largest.groups:
        first = largest.groups[0]
        reason += f"; largest: {first.kind.title}, {size_text(first.bytes)}"
    rows = tuple(group.as_json() for group in largest.groups[:ROWS])
    return replace(held(_LIMIT, "", peak, limit, reason, rows), program=largest.label)


def program_baseline(before: MemoryState, after: MemoryState, allowance: Allowance) -> list[Check]:
    """The programs that need more than the baseline allows; where none does, the largest.

    What the baseline does not have may need what the largest of the baseline does. Programs that
    are gone need nothing.
    """
    base = _largest(before.programs)
    if base is None:
        return []
    most = base.peak_bytes or 0
    if not after.programs:
        allowed = allowance.of((_LIMIT, base.name), BYTES, most)
        return [unmeasured(_BASELINE, "", allowed.limit, after.no_programs)]
    result = [
        _held(one, one.after, most, allowance)
        for one in compare_programs(before.programs, after.programs)
        if one.after is not None
    ]
    return [one for one in result if not one.passed] or result[:1]


def _held(one: ProgramDiff, after: ProgramState, most: int, allowance: Allowance) -> Check:
    before = one.before
    base = most if before is None else before.peak_bytes
    # What is new is compared with the largest, of which the runs before need not have had any.
    key = (_LIMIT, "" if before is None else before.name)
    limit = max(allowance.of(key, BYTES, base or 0).limit, most * _MINOR)
    if base is None:
        # There is nothing to compare with; the limit on programs needs no baseline.
        reason = "not compared: in the baseline, it has no buffer assignment"
        return Check(_BASELINE, "", None, limit, passed=True, reason=reason, program=after.label)
    if after.peak_bytes is None:
        why = "it has no buffer assignment"
        return replace(unmeasured(_BASELINE, "", limit, why), program=after.label)
    peak = after.peak_bytes
    change = f" ({peak / base - 1:+.1%})" if base and before is not None else ""
    known = (
        f"{size_text(base)} in the baseline{change}"
        if before is not None
        else f"no such program in the baseline, where one needs {size_text(base)} at most"
    )
    reason = f"{size_text(peak)} needed, {known}, {size_text(limit)} allowed"
    if peak > limit:
        reason = "; ".join([reason, *one.notes])
    rows: list[Mapping[str, object]] = [
        row.kind.as_json()
        | {
            "before_bytes": row.before_bytes,
            "after_bytes": row.after_bytes,
            "delta_bytes": row.delta_bytes,
            "what": row.text if before is not None else "",
        }
        for row in one.groups
        if row.delta_bytes > 0
    ]
    check = held(_BASELINE, "", peak, limit, reason, tuple(rows[:ROWS]))
    return replace(check, program=after.label, base="" if before is None else size_text(base))


def _largest(programs: Iterable[ProgramState]) -> ProgramState | None:
    known = [one for one in programs if one.peak_bytes is not None]
    return max(known, key=lambda one: one.peak_bytes or 0, default=None)


def program_figures(programs: Iterable[ProgramState]) -> dict[tuple[str, str], float]:
    """What the programs of each name need at most, by the check's name and theirs."""
    result: dict[tuple[str, str], float] = {}
    for one in programs:
        if one.peak_bytes is not None:
            key = (_LIMIT, one.name)
            result[key] = max(result.get(key, 0), one.peak_bytes)
    return result


def write_programs(programs: Sequence[ProgramState]) -> list[dict[str, object]]:
    """``programs`` of ``peakline check --json``: all that a baseline needs.

    What is live is listed of those that are compared by more than `_MINOR`.
    """
    largest = _largest(programs)
    least = _MINOR * ((largest and largest.peak_bytes) or 0)
    return [
        one.as_json()
        | {
            "peak_buffers": [
                group.as_json() for group in one.groups if (one.peak_bytes or 0) >= least
            ]
        }
        for one in programs
    ]
