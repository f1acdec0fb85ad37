"""What a capture gave: the session's path, and of several hosts a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import PeaklineError
from peakline.render.terminal.memory_answer import memory_document
from peakline.render.terminal.output import print_json
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.capture import CaptureResult, HostOutcome
    from peakline.repository import Repository, Session


_COLUMNS = ("HOST", "STATE", "SIZE", "PEAK")


def print_capture(result: CaptureResult, repository: Repository) -> None:
    """Print where the session lies, and a line per host where there are several."""
    from peakline.render.terminal.layout import Shown, Text, show
    from peakline.render.terminal.table import plain_grid

    kept = [outcome for outcome in result.outcomes if outcome.is_saved]
    if not kept:
        return
    session = repository.session(result.session_id)
    parts: list[Shown] = [Text(session.path)]
    documents: dict[str, dict[str, object]] = {}
    if len(result.outcomes) > 1:
        documents = {outcome.host: _document(session, outcome) for outcome in kept}
        rows = [_row(outcome, documents.get(outcome.host)) for outcome in result.outcomes]
        parts.append(plain_grid(_COLUMNS, rows, right=("SIZE", "PEAK"), names=("HOST",)))
    show(parts)


def print_capture_json(result: CaptureResult, repository: Repository) -> None:
    """Print one document: the session, every host's outcome and its memory answer."""
    kept = any(outcome.is_saved for outcome in result.outcomes)
    session = repository.session(result.session_id) if kept else None
    hosts = []
    for outcome in result.outcomes:
        document = _document(session, outcome) if session and outcome.is_saved else None
        hosts.append(
            {
                "host": outcome.host,
                "address": outcome.address,
                "state": outcome.state,
                "bytes": outcome.size,
                "attempts": outcome.attempts,
                "error": outcome.error,
                "memory": document,
            }
        )
    print_json(
        {
            "session_id": result.session_id,
            "path": session.path if session else None,
            "empty_trace": result.empty_trace,
            "hosts": hosts,
        }
    )


def _document(session: Session, outcome: HostOutcome) -> dict[str, object]:
    """What ``peakline memory --json`` prints, or why the profile cannot be read."""
    import peakline

    try:
        with peakline.open(session.host(outcome.host).path) as profile:
            return memory_document(profile)
    except PeaklineError as error:
        return {"error": str(error)}


def _peak(document: dict[str, object] | None) -> int | None:
    """The largest peak of any allocator; None where none is known."""
    allocators = (document or {}).get("allocators")
    if not isinstance(allocators, list):
        return None
    return max((allocator["peak_bytes"] for allocator in allocators), default=None)


def _row(outcome: HostOutcome, document: dict[str, object] | None) -> tuple[str, ...]:
    peak = _peak(document)
    size = size_text(outcome.size) if outcome.is_saved else ""
    state = outcome.state.replace("_", " ")
    return (outcome.host, state, size, "" if peak is None else size_text(peak))
