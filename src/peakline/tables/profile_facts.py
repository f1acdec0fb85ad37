"""Which profile an answer is about: what every document begins and ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.shown import Brief

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peakline.tables import Profile, ProfileWarning


@dataclass(frozen=True, repr=False)
class ProfileFacts(Brief):
    """``path`` is what was opened, ``host`` empty where the file does not say.

    ``is_moment``: the file has no records over time, it is of one moment (a heap, a report).
    """

    path: str
    format: str
    host: str
    duration_ps: int
    is_moment: bool = False

    def as_json(self) -> dict[str, object]:
        """``profile`` in what the verbs print as JSON."""
        return {
            "path": self.path,
            "format": self.format,
            "host": self.host,
            "duration_ps": self.duration_ps,
        }


def is_moment(profile: Profile) -> bool:
    """Whether the file says what there was at one moment, and not how it came about.

    So do a heap, a report of a failure, and a snapshot of PyTorch without a history.
    """
    if profile.is_derived("allocator_events"):
        return True
    if "segments" not in profile.tables:
        return False
    events = profile.columns("allocator_events")
    return bool(events.rows and (events.array("is_before") & events.is_valid("is_before")).all())


def facts_of(profile: Profile, path: str | None = None) -> ProfileFacts:
    """The facts of an open profile; ``path`` takes the place of its own."""
    return ProfileFacts(
        profile.path if path is None else path,
        profile.format,
        profile.host,
        profile.duration_ps,
        is_moment(profile),
    )


def profile_document(profile: Profile) -> dict[str, object]:
    """Which profile an answer is about, as in ``peakline memory --json``."""
    return facts_of(profile).as_json()


def warnings_document(warnings: Iterable[ProfileWarning]) -> list[dict[str, object]]:
    """What was lost or guessed, as in ``peakline memory --json``."""
    return [{"kind": kind, "count": count, "detail": detail} for kind, count, detail in warnings]
