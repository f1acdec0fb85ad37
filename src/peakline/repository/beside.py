"""What lies in one directory: programs of XLA, profiles without any of their own, and logs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.repository.names import host_of
from peakline.repository.store import Unreadable, is_url
from peakline.repository.stores import store_for

_TEXTS = (".log", ".txt", ".out", ".err")


def dumped_in(path: str | os.PathLike[str]) -> str | None:
    """``path`` where it is a local directory into which XLA dumped programs (``module_*``; not
    XProf's own ``*.hlo_proto.pb``, which come from the profile beside them).
    """
    from peakline.formats.hlo_dump.listing import is_dump

    place = os.fspath(path)
    found = (name for name in _files(place) if name.startswith("module_"))
    return place if is_dump(found) else None


def programs_beside(file: str) -> list[str]:
    """The files of compiled programs that XProf wrote beside the profile ``file``, by name; none
    of a file that has not the name of a session's profile, or whose directory cannot be read.
    """
    from peakline.formats.hlo_dump.listing import is_xprof_program

    parent, separator, name = file.replace(os.sep, "/").rpartition("/")
    if host_of(name) is None:
        return []
    place = parent + separator if separator == "/" and not parent else parent or "."
    with suppress(InputError, NotFoundError, UsageError, Unreadable):
        entries = store_for(place, {}).folder(place).files()
        return sorted(entry.path for entry in entries if is_xprof_program(entry.name))
    return []


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
