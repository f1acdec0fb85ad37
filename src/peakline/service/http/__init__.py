"""The HTTP face: sessions, tools, SQL, captures and uploads, described by ``/openapi.json``."""

from __future__ import annotations

from peakline.service.http.app import create_app

__all__ = ["create_app"]
