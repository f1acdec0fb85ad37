"""Answers drawn: terminal, HTML, Markdown, notebook, continuous integration.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.render.markdown import comparison_markdown, summary_markdown

__all__ = [
    "comparison_markdown",
    "summary_markdown",
]

__getattr__ = door(
    __name__,
    {
        "comparison_markdown": ".markdown",
        "summary_markdown": ".markdown",
    },
)
__dir__ = listed(__name__)
