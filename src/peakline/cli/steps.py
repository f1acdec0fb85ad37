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
    from peakline.analysis.timing.answer import TimeAnswer
    from peakline.api import Profile

__all__ = ["steps"]


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
    from peakline.analysis.timing.answer import NO_STEPS, answer_time
    from peakline.cli.hosts import StragglerHosts, tell_hosts

    def tell(profile: Profile) -> dict[str, object] | None:
        answer = answer_time(profile)
        if json:
            return _document(profile, answer)
        from peakline.cli.steps_screen import print_steps

        print_steps(profile, answer)
        return None

    tell_hosts(
        path, session, host, tell, strict=strict, max_unpacked=max_unpacked, json=json,
        besides=frozenset({NO_STEPS}), at_the_end=StragglerHosts(),
    )  # fmt: skip


def _document(profile: Profile, answer: TimeAnswer) -> dict[str, object]:
    from peakline.analysis.profile_facts import profile_document, warnings_document

    return {
        "profile": profile_document(profile),
        **answer.as_json(),
        "warnings": warnings_document(profile.warnings),
    }
