"""A profile as tables: their definitions, the columns that hold them, and `Profile` itself."""

from peakline.profile.columns import Columns, Names
from peakline.profile.profile import Derivation, Profile, ProfileWarning
from peakline.profile.reader import Reader, Warnings
from peakline.profile.tables import TABLES

__all__ = [
    "TABLES",
    "Columns",
    "Derivation",
    "Names",
    "Profile",
    "ProfileWarning",
    "Reader",
    "Warnings",
]
