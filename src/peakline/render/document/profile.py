"""How a profile is called."""

from __future__ import annotations

from peakline.tables import Profile
from peakline.text import time_text


def profile_text(profile: Profile, *, moment: bool = False) -> str:
    """What a profile is and how long; a file of one ``moment`` has no length."""
    host = f", host {profile.host}" if profile.host else ""
    return f"{profile.format}{host}" + ("" if moment else f", {time_text(profile.duration_ps)}")
