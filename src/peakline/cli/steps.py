"""``peakline steps``: how long steps take, what their time goes to, which stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.cli.options import (
    Host,
    Json,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
)

if TYPE_CHECKING:
    from peakline.analysis.timing.answer import TimeAnswer
    from peakline.api import Profile

__all__ = ["steps"]


def steps(
    path: PathArgument,
    session: SessionId = None,
    host: Host = None,
    *,
    json: Json = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
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
