"""One self-contained HTML page about a profile: `write_report`.

Importing this module loads no analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.render.html.page import write_report

__all__ = ["write_report"]

__getattr__ = door(__name__, {"write_report": "peakline.render.html.page"})
__dir__ = listed(__name__)
