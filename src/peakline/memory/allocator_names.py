"""What a person calls an allocator that the file names by a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.tables import Profile

_DEVICE = re.compile(r"/device:\w+:(\d+)")


def shown_names(profile: Profile) -> dict[str, str]:
    """``/device:TPU:0`` for an allocator ``0``: by the number of each device that is the only one.

    TPU runtimes name an allocator by the device's index on the host (the stat ``index_on_host``),
    as XProf does; the planes say which device that is. The records of memory are not read for it:
    who shows an answer may have given them up.
    """
    if "planes" not in profile.tables or "allocator_events" not in profile.tables:
        return {}
    devices: dict[str, list[str]] = {}
    for plane in profile.columns("planes", {"name"}).names("name").to_list():
        if match := _DEVICE.fullmatch(plane or ""):
            devices.setdefault(match[1], []).append(match[0])
    return {number: names[0] for number, names in devices.items() if len(names) == 1}


def recorded_name(profile: Profile, allocator: str | None) -> str | None:
    """The name that the file has for ``allocator``, which may be the one that screens show.

    ``TPU:0`` is taken for ``/device:TPU:0``.
    """
    if allocator is None:
        return None
    for recorded, shown in shown_names(profile).items():
        if allocator in (shown, shown.removeprefix("/device:")):
            table = profile.columns("allocator_events", {"allocator"})
            return recorded if recorded in table.names("allocator").values else allocator
    return allocator
