"""Every kind of warning: what it means, what it changes in the answers, and what to do."""

from __future__ import annotations

from peakline.tables.warning_kinds.files import FILES
from peakline.tables.warning_kinds.kind import WarningKind
from peakline.tables.warning_kinds.memory import MEMORY
from peakline.tables.warning_kinds.programs import PROGRAMS
from peakline.tables.warning_kinds.time import TIME

__all__ = ["GROUPS", "KINDS", "WarningKind"]

GROUPS = {"Files": FILES, "Memory": MEMORY, "Time and tools": TIME, "Compiled programs": PROGRAMS}
KINDS = {one.code: one for group in GROUPS.values() for one in group}
