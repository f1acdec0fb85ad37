"""From a path to sessions, hosts and files; and files that appear only when they are whole."""

from __future__ import annotations

from peakline.repository.layout import (
    HostFile,
    Session,
    host_file_name,
    hosts,
    resolve,
    sessions,
)
from peakline.repository.writing import write_atomically

__all__ = [
    "HostFile",
    "Session",
    "host_file_name",
    "hosts",
    "resolve",
    "sessions",
    "write_atomically",
]
