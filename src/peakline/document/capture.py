"""What is said of a capture: the session's path, and of every host what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import peakline
from peakline.document.memory import memory_document
from peakline.document.model import Table, columns_of
from peakline.errors import PeaklineError

if TYPE_CHECKING:
    from peakline.capture import CaptureResult, HostOutcome
    from peakline.repository import Repository, Session


def capture_document(result: CaptureResult, repository: Repository) -> dict[str, object]:
    """What ``peakline capture --json`` prints: the session, every host's outcome and its memory."""
    is_stored = any(outcome.is_saved for outcome in result.outcomes)
    session = repository.session(result.session_id) if is_stored else None
    hosts = [
        {
            "host": outcome.host,
            "address": outcome.address,
            "state": outcome.state,
            "bytes": outcome.size,
            "attempts": outcome.attempts,
            "error": outcome.error,
            "memory": _memory(session, outcome) if session and outcome.is_saved else None,
        }
        for outcome in result.outcomes
    ]
    return {
        "session_id": result.session_id,
        "path": session.path if session else None,
        "empty_trace": result.empty_trace,
        "hosts": hosts,
    }


def hosts_table(result: CaptureResult, session: Session) -> Table:
    """A row per host, with the largest peak of what it recorded."""
    rows = []
    for outcome in result.outcomes:
        peak = _peak(_memory(session, outcome)) if outcome.is_saved else None
        state = outcome.state.replace("_", " ")
        rows.append((outcome.host, state, outcome.size if outcome.is_saved else "", peak))
    columns = columns_of(host="name", state="", size="bytes", peak="bytes")
    cells = [[*row[:3], "" if row[3] is None else row[3]] for row in rows]
    return Table("", columns, cells)


def _memory(session: Session, outcome: HostOutcome) -> dict[str, object]:
    """What ``peakline memory --json`` prints, or why the profile cannot be read."""
    try:
        with peakline.open(session.host(outcome.host).path) as profile:
            return memory_document(profile)
    except PeaklineError as error:
        return {"error": str(error)}


def _peak(document: dict[str, object]) -> int | None:
    """The largest peak of any allocator; None where none is known."""
    allocators = document.get("allocators")
    if not isinstance(allocators, list):
        return None
    return max((allocator["peak_bytes"] for allocator in allocators), default=None)
