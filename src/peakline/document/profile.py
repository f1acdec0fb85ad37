"""How a profile is called, and what the JSON of every answer about one begins and ends with."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.tables import Profile
from peakline.tables.profile_facts import profile_document, warnings_document
from peakline.text import time_text


def profile_text(profile: Profile, *, moment: bool = False) -> str:
    """What a profile is and how long; a file of one ``moment``, or without time, has no length."""
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment or not profile.duration_ps else f", {time_text(profile.duration_ps)}"
    return f"{profile.format}{host}{length}"


def answer_document(profile: Profile, answer: Mapping[str, object]) -> dict[str, object]:
    """What ``--json`` prints: the profile, the fields of ``answer``, the warnings so far."""
    warnings = warnings_document(profile.warnings)
    return {"profile": profile_document(profile), **answer, "warnings": warnings}
