"""How a profile is called."""

from __future__ import annotations

from peakline.tables import Profile
from peakline.text import time_text


def profile_text(profile: Profile, *, moment: bool = False) -> str:
    """What a profile is and how long; a file of one ``moment``, or without time, has no length."""
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment or not profile.duration_ps else f", {time_text(profile.duration_ps)}"
    return f"{profile.format}{host}{length}"
