"""One self-contained HTML page about a profile, or a job: `write_report`, `write_job_report`.

Importing this module loads no analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.render.html.page import write_job_report, write_report

__all__ = ["write_job_report", "write_report"]

__getattr__ = door(__name__, dict.fromkeys(__all__, "peakline.render.html.page"))
__dir__ = listed(__name__)
