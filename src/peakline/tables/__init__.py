"""A profile as tables: their definitions, the columns that hold them, and `Profile` itself."""

from typing import TYPE_CHECKING

from peakline.lazy import door

if TYPE_CHECKING:
    from peakline.tables.columns import Column, Columns, Names
    from peakline.tables.profile import ColumnDerivation, Derivation, Profile, ProfileWarning
    from peakline.tables.reader import Reader, Warnings
    from peakline.tables.tables import TABLES

__all__ = [
    "TABLES",
    "Column",
    "ColumnDerivation",
    "Columns",
    "Derivation",
    "Names",
    "Profile",
    "ProfileWarning",
    "Reader",
    "Warnings",
]

__getattr__ = door(
    __name__,
    {
        "TABLES": ".tables",
        "ColumnDerivation": ".profile",
        "Column": ".columns",
        "Columns": ".columns",
        "Derivation": ".profile",
        "Names": ".columns",
        "Profile": ".profile",
        "ProfileWarning": ".profile",
        "Reader": ".reader",
        "Warnings": ".reader",
    },
)
