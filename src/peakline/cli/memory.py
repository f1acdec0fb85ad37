"""``peakline memory``: the peak of every allocator and what was live at it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from peakline.cli.options import (
    Host,
    Json,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
    print_warnings,
)
from peakline.cli.output import print_json

if TYPE_CHECKING:
    from peakline.analysis.findings import Finding
    from peakline.analysis.memory import MemoryAnswer
    from peakline.api import Profile
    from peakline.profile.columns import Columns

__all__ = ["memory", "memory_document", "show_memory"]

_NOTHING = "no_memory_events"


def memory(
    path: PathArgument,
    allocator: Annotated[
        str | None,
        typer.Option("--allocator", metavar="NAME", help="Only this allocator."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--step",
            metavar="STEP",
            help="The largest use while this step ran: a step's id, or its name.",
        ),
    ] = None,
    session: SessionId = None,
    host: Host = None,
    *,
    json: Json = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Explain the memory peak: how much, when, and what was live."""
    import peakline

    with peakline.open(
        path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
    ) as profile:
        show_memory(profile, allocator=allocator, step=step, as_json=json)


def show_memory(
    profile: Profile, *, allocator: str | None = None, step: str | None = None, as_json: bool
) -> None:
    """Print the memory answer for ``profile``, then what had to be guessed."""
    answer, nothing = _answer_told(profile, allocator, step)
    if as_json:
        print_json(_document(profile, answer))
    elif nothing:
        from peakline.cli.text import one_line

        print(one_line(f"{profile.path}: {nothing}"))
    elif answer is not None:
        from peakline.cli.memory_screen import print_memory

        moment = profile.is_derived("allocator_events")
        print_memory(profile, answer, _steps(profile), moment=moment)
    print_warnings(profile.warnings, besides=_NOTHING)


def memory_document(profile: Profile) -> dict[str, object]:
    """What ``peakline memory --json`` prints for ``profile``."""
    answer, _ = _answer_told(profile, None, None)
    return _document(profile, answer)


def _answer_told(
    profile: Profile, allocator: str | None, step: str | None
) -> tuple[MemoryAnswer | None, str]:
    """The answer, and the words for having none; what it had to guess is among the warnings."""
    answer = _answer(profile, allocator, step)
    if answer is None or not (answer.allocators or answer.findings):
        where = "this profile" if answer is None or answer.step is None else f"step {step}"
        nothing = f"no memory events in {where}"
        profile.warn(_NOTHING, nothing)
    else:
        nothing = ""
        told = {warning.kind for warning in profile.warnings}
        for notice in answer.notices:
            # A log's reader has told of its untracked records, and their bytes, already.
            if not (notice.kind == "untracked_allocation" and "untracked" in told):
                profile.warn(notice.kind, notice.detail, notice.count)
    return answer, nothing


def _answer(profile: Profile, allocator: str | None, step: str | None) -> MemoryAnswer | None:
    """The answer, or None when the file holds neither memory events nor failed allocations."""
    failures = _failures(profile)
    if "allocator_events" in profile.tables and profile.columns("allocator_events").rows:
        # Compiling and loading the kernels takes a moment: only when there is something to explain.
        from peakline.analysis.memory import explain_memory

        events = profile.columns("allocator_events")
        answer = explain_memory(events, _steps(profile), allocator=allocator, step=step)
        return replace(answer, findings=(*failures, *answer.findings))
    if not failures:
        return None
    from peakline.analysis.memory import MemoryAnswer

    return MemoryAnswer((), failures, (), None)


def _failures(profile: Profile) -> tuple[Finding, ...]:
    """Why allocations failed, where the file reports any that did."""
    if "oom_reports" not in profile.tables or not profile.columns("oom_reports").rows:
        return ()
    from peakline.analysis.oom import oom_findings
    from peakline.profile.tables import empty_columns

    has_blocks = "blocks" in profile.tables
    blocks = profile.columns("blocks") if has_blocks else empty_columns("blocks")
    return tuple(oom_findings(profile.columns("oom_reports"), blocks))


def _steps(profile: Profile) -> Columns:
    """The steps; none where the format does not know them."""
    if "steps" in profile.tables:
        return profile.columns("steps")
    from peakline.profile.tables import empty_columns

    return empty_columns("steps")


def _document(profile: Profile, answer: MemoryAnswer | None) -> dict[str, object]:
    return {
        "profile": {
            "path": profile.path,
            "format": profile.format,
            "host": profile.host,
            "duration_ps": profile.duration_ps,
        },
        "allocators": [peak.as_json() for peak in answer.allocators] if answer else [],
        "findings": [finding.as_json() for finding in answer.findings] if answer else [],
        "warnings": [
            {"kind": kind, "count": count, "detail": detail}
            for kind, count, detail in profile.warnings
        ],
    }
