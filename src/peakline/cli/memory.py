"""``peakline memory``: the peak of every allocator and what was live at it."""

from __future__ import annotations

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
    from peakline.analysis.answer import MemoryAnswer
    from peakline.api import Profile

__all__ = ["memory", "memory_document", "show_memory"]


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
    from peakline.analysis.answer import NOTHING, answer_memory, steps_of

    answer = answer_memory(profile, allocator=allocator, step=step)
    if as_json:
        print_json(_document(profile, answer))
    elif answer.nothing:
        from peakline.cli.text import one_line

        print(one_line(f"{profile.path}: {answer.nothing}"))
    else:
        from peakline.cli.memory_screen import print_memory

        moment = profile.is_derived("allocator_events")
        print_memory(profile, answer, steps_of(profile), moment=moment)
    print_warnings(profile.warnings, besides=NOTHING)


def memory_document(profile: Profile) -> dict[str, object]:
    """What ``peakline memory --json`` prints for ``profile``."""
    from peakline.analysis.answer import answer_memory

    return _document(profile, answer_memory(profile))


def _document(profile: Profile, answer: MemoryAnswer) -> dict[str, object]:
    return {
        "profile": {
            "path": profile.path,
            "format": profile.format,
            "host": profile.host,
            "duration_ps": profile.duration_ps,
        },
        "allocators": [peak.as_json() for peak in answer.allocators],
        "findings": [finding.as_json() for finding in answer.findings],
        "warnings": [
            {"kind": kind, "count": count, "detail": detail}
            for kind, count, detail in profile.warnings
        ],
    }
