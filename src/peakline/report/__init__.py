"""One self-contained HTML page about the memory of a profile: `write_report`.

Importing this package loads neither Plotly nor an analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.report.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """Import what writes the page on first use (PEP 562)."""
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from peakline.report.page import write_report

    globals()[name] = write_report
    return write_report
