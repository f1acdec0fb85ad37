"""The page: plain ES modules under ``static/``, and what a server needs to hand them out."""

from __future__ import annotations

from peakline.web.files import PageFile, content_policy, page_files, session_address
from peakline.web.modules import needed_modules

__all__ = [
    "PageFile",
    "content_policy",
    "needed_modules",
    "page_files",
    "session_address",
]
