"""What lies in one directory with XLA's dumps: profiles without programs of their own, and logs."""

from __future__ import annotations

import os
from pathlib import Path

from peakline.repository.store import is_url

_TEXTS = (".log", ".txt", ".out", ".err")


def dumped_in(path: str | os.PathLike[str]) -> str | None:
    """``path`` where it is a local directory into which XLA dumped programs (``module_*``; not
    XProf's own ``*.hlo_proto.pb``, which come from the profile beside them).
    """
    from peakline.formats.hlo_dump.listing import is_dump

    place = os.fspath(path)
    found = (name for name in _files(place) if name.startswith("module_"))
    return place if is_dump(found) else None


def logs_in(directory: str) -> list[str]:
    """The paths of texts in a directory of dumps that XLA did not write, by name."""
    return [
        str(Path(directory) / name)
        for name in sorted(_files(directory))
        if name.removesuffix(".gz").endswith(_TEXTS) and not name.startswith((".", "module_"))
    ]


def _files(place: str) -> list[str]:
    """The names in a local directory; none of one that cannot be read, or of a file."""
    try:
        return [] if is_url(place) else [entry.name for entry in Path(place).iterdir()]
    except OSError:
        return []
