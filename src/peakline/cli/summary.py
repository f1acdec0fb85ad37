"""``peakline summary``: memory and time on one screen, and what to fix first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from peakline.cli.options import (
    host_option,
    json_option,
    max_unpacked_option,
    path_argument,
    session_option,
    strict_option,
)

if TYPE_CHECKING:
    from peakline.api import Profile

__all__ = ["summary"]


@click.command()
@path_argument
@session_option
@host_option
@json_option
@strict_option
@max_unpacked_option
def summary(
    path: str,
    session: str | None,
    host: str | None,
    *,
    json: bool,
    strict: bool,
    max_unpacked: int | None,
) -> None:
    """Say on one screen what memory and time do, and the three things to fix first."""
    from peakline.cli.options import StragglerHosts, tell_hosts
    from peakline.findings.memory_answer import NOTHING
    from peakline.findings.time_answer import NO_STEPS

    def tell(profile: Profile) -> dict[str, object] | None:
        if json:
            from peakline.findings.summary import summary_document

            return summary_document(profile, is_last=True)
        from peakline.findings.ranking import priorities
        from peakline.findings.summary import answers_of
        from peakline.render.terminal.summary import print_summary

        memory, time = answers_of(profile, is_last=True)
        print_summary(profile, memory, time, priorities(memory.findings, time.findings))
        return None

    tell_hosts(
        path, session, host, tell, strict=strict, max_unpacked=max_unpacked, json=json,
        besides=frozenset({NOTHING, NO_STEPS}), at_the_end=StragglerHosts(),
    )  # fmt: skip
