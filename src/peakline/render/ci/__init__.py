"""The outcome of a check for programs of continuous integration.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.render.ci.files import (
        annotations_for,
        append_text,
        check_places,
        write_reports,
        write_text,
    )
    from peakline.render.ci.reports import Outcome

__all__ = [
    "Outcome",
    "annotations_for",
    "append_text",
    "check_places",
    "write_reports",
    "write_text",
]

__getattr__ = door(
    __name__,
    {
        "Outcome": ".reports",
        "annotations_for": ".files",
        "append_text": ".files",
        "check_places": ".files",
        "write_reports": ".files",
        "write_text": ".files",
    },
)
__dir__ = listed(__name__)
