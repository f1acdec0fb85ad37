"""How ``peakline export`` marks what the Trace Event Format has no record for."""

__all__ = ["EXPORTER", "EXPORTER_KEY", "STEP_ARGUMENT", "STEP_CATEGORY"]

EXPORTER_KEY, EXPORTER = "exporter", "peakline"
"""An entry of ``metadata``, at the file's begin: what follows holds for such files only."""

STEP_CATEGORY = "peakline.step"
"""The category of rows that are steps, and no events."""

STEP_ARGUMENT = "group_id"
"""The argument that is the id of an event's step, as in XProf's traces."""
