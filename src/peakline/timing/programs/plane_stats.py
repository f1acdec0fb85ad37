"""What the planes of devices say of themselves."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.tables import Profile


def plane_stats_of(profile: Profile, plane: int) -> Mapping[str, str]:
    """The stats of the plane in row ``plane`` of ``planes``, as texts; empty without any.

    Of equal names the last counts.
    """
    if "plane_stats" not in profile.tables:
        return {}
    stats = profile.columns("plane_stats")
    rows = (stats.array("plane_id") == plane).nonzero()[0]
    names = stats.names("name").take(rows).to_list()
    values = stats.names("value").take(rows).to_list()
    return {name or "": value or "" for name, value in zip(names, values, strict=True)}


def vendors_of(profile: Profile) -> dict[int, str]:
    """Who made the device of each plane that says it: Nvidia, AMD."""
    planes = profile.columns("planes").rows
    stated = {plane: plane_stats_of(profile, plane).get("device_vendor") for plane in range(planes)}
    return {plane: vendor for plane, vendor in stated.items() if vendor}
