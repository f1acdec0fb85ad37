"""``peakline steps``: how long steps take, what their time goes to, which stand out."""

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

__all__ = ["steps", "steps_document"]


@click.command()
@path_argument
@session_option
@host_option
@json_option
@strict_option
@max_unpacked_option
def steps(
    path: str,
    session: str | None,
    host: str | None,
    *,
    json: bool,
    strict: bool,
    max_unpacked: int | None,
) -> None:
    """Say how long steps take, what their time goes to, and which of them stand out."""
    from peakline.cli.options import StragglerHosts, tell_hosts
    from peakline.findings.time_answer import NO_STEPS, answer_time

    def tell(profile: Profile) -> dict[str, object] | None:
        if json:
            return steps_document(profile)
        from peakline.render.terminal.steps import print_steps

        print_steps(profile, answer_time(profile))
        return None

    tell_hosts(
        path, session, host, tell, strict=strict, max_unpacked=max_unpacked, json=json,
        besides=frozenset({NO_STEPS}), at_the_end=StragglerHosts(),
    )  # fmt: skip


def steps_document(profile: Profile) -> dict[str, object]:
    """What ``peakline steps --json`` prints for ``profile``."""
    from peakline.findings.time_answer import answer_time
    from peakline.tables.profile_facts import profile_document, warnings_document

    answer = answer_time(profile).as_json()
    return {
        "profile": profile_document(profile),
        **answer,
        "warnings": warnings_document(profile.warnings),
    }
