"""The page: plain ES modules under ``static/``, and what a server needs to hand them out."""

from __future__ import annotations

from peakline.web.files import (
    Edition,
    Editions,
    PageFile,
    content_policy,
    edition_part,
    page_files,
    session_address,
    without_edition,
)

__all__ = [
    "Edition",
    "Editions",
    "PageFile",
    "content_policy",
    "edition_part",
    "page_files",
    "session_address",
    "without_edition",
]
