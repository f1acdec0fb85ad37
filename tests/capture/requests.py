"""Requests for captures, and what lies in a repository afterwards."""

from pathlib import Path
from typing import Any

import pytest
from tests.capture.peers import profile_of
from tests.waiting import HANG_S

from peakline.capture import CaptureRequest, Target, default_options
from peakline.repository import Repository

ID = "s1"
NOWHERE = "127.0.0.1:1"
LONG_MS = round(1000 * HANG_S)


def request_for(
    *addresses: str, names: list[str] | tuple[str, ...] = (), **changes: Any
) -> CaptureRequest:
    """A request for the profilers there, stored under ``names`` or under their addresses."""
    fields = {"duration_ms": 10, "options": default_options(), "session_id": ID} | changes
    return CaptureRequest(targets=tuple(map(Target, names or addresses, addresses)), **fields)


def files_of(repository: Repository) -> list[str]:
    """Every file below the log directory."""
    root = Path(repository.logdir)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def session_directory(repository: Repository) -> Path:
    """Where the session of `request_for` is."""
    return Path(repository.logdir) / "plugins" / "profile" / ID


def good(*_: object) -> bytes:
    """A profiler that answers with a profile at once."""
    return profile_of()


def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures of this process try again, and look again, at once."""
    for pause in ("_FIRST_PAUSE_S", "_LOOK_PAUSE_S"):
        monkeypatch.setattr(f"peakline.capture.host.{pause}", 0.001)
