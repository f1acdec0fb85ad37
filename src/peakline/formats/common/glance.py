"""What the name of a file and a short look at its bytes say of it, without reading it.

An ``opener`` opens it for a caller who may not open every file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.formats.common.files import Opener

_PLAIN = ".xplane.pb"


def possible_tables(path: str) -> frozenset[str] | None:
    """The tables that a file of that name can have; None where the name says nothing."""
    if not path.endswith((_PLAIN, f"{_PLAIN}.gz")):
        return None
    from peakline.formats.xplane.reader import TABLES

    return TABLES


def missing_tables(path: str, opener: Opener | None = None) -> frozenset[str]:
    """Tables of which the local file surely has no row."""
    from peakline.formats.xplane import presence
    from peakline.tables.program_tables import PROGRAM_TABLES

    if not path.endswith(_PLAIN):
        return frozenset()
    has_memory = presence.may_name_memory_events(path, opener)
    has_programs = presence.may_hold_programs(path, opener)
    return (frozenset() if has_memory else presence.MEMORY_TABLES) | (
        frozenset() if has_programs else PROGRAM_TABLES
    )


def names_in(path: str, names: Iterable[str], opener: Opener | None = None) -> frozenset[str]:
    """Which of ``names`` may stand in the metadata of the local file."""
    from peakline.formats.xplane import presence

    if not path.endswith(_PLAIN):
        return frozenset(names)
    found = presence.names_in(path, (name.encode() for name in names), opener)
    return frozenset(name.decode() for name in found)


def may_have_gpus(path: str, opener: Opener | None = None) -> bool:
    """False when the local file surely has no plane of a GPU."""
    from peakline.formats.xplane import presence

    return not path.endswith(_PLAIN) or presence.may_have_gpus(path, opener)
